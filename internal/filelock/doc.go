// Package filelock keeps other processes from a file. The lock is one of the operating system:
// it ends when the file is closed, and so with the process however that ends.
package filelock
