// Package shell formats commands so that a person can paste them into a shell.
package shell
