/* Hands libFuzzer's inputs to one kernel target.
 *
 * The interpreter is started once, to load the instrumented extensions and link the kernels to one another as Python
 * does; the targets themselves run without it and without the GIL. TARGET is fuzz_<name> of MODULE, which is
 * kernels_<format>.
 */
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define JOINED(a, b) a##b
#define INIT(module) JOINED(PyInit_, module)

PyMODINIT_FUNC INIT(MODULE)(void);
int TARGET(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    PyImport_AppendInittab("kernels", INIT(MODULE));
    Py_InitializeEx(0);
    if (PyImport_ImportModule("kernels") == NULL) {
        PyErr_Print();
        exit(1);
    }
    PyEval_SaveThread();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    TARGET(data, size);
    return 0;
}
