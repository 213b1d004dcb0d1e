package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/pflag"
)

// registerNoOpen registers the option of commands that open the page.
func registerNoOpen(f *pflag.FlagSet, noBrowser *bool) {
	f.BoolVar(noBrowser, "no-open", false, "open no browser, only print the link of the page (default: one is opened, but not over SSH, with CI or without a terminal)")
}

// openPage opens an address in a browser, where a person sits at this machine and wants it. The
// address was printed, so that no error matters.
func (p *program) openPage(address string, noBrowser bool) {
	if address == "" || noBrowser || p.openBrowser == nil || !p.isErrTerminal || p.getenv("CI") != "" || p.getenv("SSH_CONNECTION") != "" {
		return
	}
	_ = p.openBrowser(address)
}

var errNoBrowser = errors.New("this machine shows no browser")

// openBrowser opens a URL in the browser of the person, and does not wait for it.
func openBrowser(url string) error {
	command := browserCommand(runtime.GOOS, os.Getenv, url)
	if command == nil {
		return errNoBrowser
	}
	run := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the person's own browser, which outlives graphd
	run.SysProcAttr = detachedProcess()
	if err := run.Start(); err != nil {
		return err
	}
	go func() { _ = run.Wait() }() // so that no zombie is left
	return nil
}

// browserCommand returns the command that opens a URL on a system, nil when no browser can be
// shown. $BROWSER names one, as it does for other programs.
func browserCommand(system string, getenv func(string) string, url string) []string {
	if list := filepath.SplitList(getenv("BROWSER")); len(list) > 0 {
		command, hasPlace := strings.Fields(list[0]), false
		for i, part := range command {
			hasPlace = hasPlace || strings.Contains(part, "%s")
			command[i] = strings.ReplaceAll(part, "%s", url)
		}
		if len(command) > 0 && !hasPlace {
			command = append(command, url)
		}
		return command
	}
	switch {
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", url}
	case system == "darwin":
		return []string{"open", url}
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return nil // xdg-open would start a browser in the terminal
	}
	return []string{"xdg-open", url}
}
