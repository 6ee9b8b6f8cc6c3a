/* Hands libFuzzer's inputs to one kernel target.
 *
 * The interpreter is started once, to load the instrumented extensions and link the kernels to one another as Python
 * does; the targets themselves run without it and without the GIL. TARGET is fuzz_<name> of kernels.pyx.
 */
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

PyMODINIT_FUNC PyInit_kernels(void);
int TARGET(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    PyImport_AppendInittab("kernels", PyInit_kernels);
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
