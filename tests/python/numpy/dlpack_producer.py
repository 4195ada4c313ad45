"""An object that has DLPack and nothing else, whose tensor a test may fill in as it likes."""
import ctypes

CPU, CUDA = 1, 2


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h 1.0."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("axes", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    """DLManagedTensor: the capsule "dltensor"."""


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned: the capsule "dltensor_versioned"."""


DELETER, VERSIONED_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed)), ctypes.CFUNCTYPE(
    None, ctypes.POINTER(Versioned))
Managed._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]
Versioned._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                      ("deleter", VERSIONED_DELETER), ("flags", ctypes.c_uint64), ("tensor", Tensor)]
READ_ONLY = 1

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


# Whose memory consumers have and have not released yet, once for each: till then it must live, whoever else forgets it.
handed_out = []


class Producer:
    """Has __dlpack__ and nothing else. `changes` go into its DLTensor; `flags` needs a versioned capsule."""

    code_of = {"f": 2, "b": 6, "i": 0, "u": 1, "c": 5}

    def __init__(self, array, versioned=False, flags=0, major=1, without_strides=False, name=None, **changes):
        self.array, self.versioned, self.released = array, versioned, 0
        axes = array.ndim
        more = [1] * 8  # for tests that say there are more axes
        self.shape = (ctypes.c_int64 * (axes + 8))(*array.shape, *more)
        self.strides = (ctypes.c_int64 * (axes + 8))(*[stride // array.itemsize for stride in array.strides], *more)
        tensor = Tensor(array.ctypes.data, CPU, 0, axes, self.code_of[array.dtype.kind], array.itemsize * 8, 1,
                        self.shape, None if without_strides else self.strides, 0)
        for field, value in changes.items():
            setattr(tensor, field, value)
        self.old = Managed(tensor, None, DELETER(self.release))
        self.new = Versioned(major, 0, None, VERSIONED_DELETER(self.release), flags, tensor)
        self.name = name

    def release(self, managed):
        self.released += 1
        handed_out.remove(self)

    def __dlpack__(self, **settings):
        if not self.versioned and settings:
            raise TypeError("a producer from before versions")
        self.settings = settings
        handed_out.append(self)
        if settings.get("max_version"):  # the consumer is from after versions, too
            return new_capsule(ctypes.addressof(self.new), self.name or b"dltensor_versioned", None)
        return new_capsule(ctypes.addressof(self.old), self.name or b"dltensor", None)

    def __dlpack_device__(self):
        return CPU, 0
