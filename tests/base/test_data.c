#include "test_data.h"

#include <stdlib.h>

#include "base/file.h"
#include "cmocka_test.h"

char *test_data_path(const char *name)
{
    const char *folder = getenv("ATTN_TEST_DATA");
    assert_non_null(folder);
    char *path = attn_path_join(folder, name);
    assert_non_null(path);
    return path;
}

json_t *test_data_json(const char *name)
{
    char *path = test_data_path(name);
    json_error_t problem;
    json_t *value = json_load_file(path, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
    if (!value)
        fail_msg("%s: line %d: %s", path, problem.line, problem.text);
    if (json_array_size(value) + json_object_size(value) == 0)
        fail_msg("%s: has nothing to compare with", path);
    free(path);
    return value;
}
