// Package report describes errors, and the command that helps.
package report
