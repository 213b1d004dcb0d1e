//go:build unix

package main

import "syscall"

// detachedProcess returns the attributes of a process that has not the terminal: a Ctrl-C for graphd
// must not end the browser.
func detachedProcess() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
