// A shared library to be found at run time.
extern "C" int sweep_test_function() { return 42; }
