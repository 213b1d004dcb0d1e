package main

import "syscall"

// detachedProcess returns the attributes of a process that has not the console: a Ctrl-C for graphd
// must not end the browser.
func detachedProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
