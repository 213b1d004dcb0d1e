// Package report says what went wrong and which command helps.
package report
