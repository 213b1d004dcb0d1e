// Package exit has the errors with which commands end, and the exit code of each.
package exit
