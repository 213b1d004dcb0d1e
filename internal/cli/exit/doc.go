// Package exit has the errors with which commands end, and their exit codes.
package exit
