// Package file writes the audit as lines of JSON: to a file, which it opens anew when
// another program renames or removes it, or to a stream such as standard output.
package file
