// Package shell words commands so that a person can paste them into a shell.
package shell
