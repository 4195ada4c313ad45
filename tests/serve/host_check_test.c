/* Which Host and Origin headers mean this server. */
#include "serve/host_check.h"

#include <string.h>

#include "cmocka_test.h"

enum { PORT = 8080 };

static void test_hosts_that_are_this_server(void **state)
{
    (void)state;
    const char *const hosts[] = {"127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080",
                                 "[::1]:8080",     "10.0.0.7:8080",  "study.example:8080"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (!host_check(hosts[i], "study.example", PORT))
            fail_msg("%s is refused", hosts[i]);
    assert_true(host_check("localhost", "127.0.0.1", 80));
    assert_true(host_check("localhost:80", "127.0.0.1", 80));
}

static void test_hosts_of_others(void **state)
{
    (void)state;
    const char *const hosts[] = {NULL,
                                 "",
                                 ":8080",
                                 "evil.example:8080",
                                 "127.0.0.1",
                                 "127.0.0.1:",
                                 "127.0.0.1:80",
                                 "127.0.0.1:08080x",
                                 "127.0.0.1:8080.evil.example",
                                 "localhost:8080@evil.example",
                                 "127.0.0.1.evil.example:8080",
                                 "localhost.evil.example:8080",
                                 "[::1]",
                                 "[::1:8080",
                                 "[localhost]:8080",
                                 "[]:8080",
                                 "[::1]x:8080",
                                 "127.1:8080",
                                 "localhost:-8080",
                                 "localhost: 8080",
                                 "localhost:18446744073709559696"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (host_check(hosts[i], "127.0.0.1", PORT))
            fail_msg("%s is taken", hosts[i] ? hosts[i] : "no host");
    char longest[1024];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_false(host_check(longest, longest, PORT));
}

static void test_origins(void **state)
{
    (void)state;
    assert_true(origin_check(NULL, "localhost:8080"));
    assert_true(origin_check("http://localhost:8080", "localhost:8080"));
    const char *const others[] = {"null",
                                  "",
                                  "https://localhost:8080",
                                  "http://localhost:80",
                                  "http://evil.example",
                                  "http://localhost:8080.evil.example"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (origin_check(others[i], "localhost:8080"))
            fail_msg("%s is taken", others[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_that_are_this_server),
        cmocka_unit_test(test_hosts_of_others),
        cmocka_unit_test(test_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
