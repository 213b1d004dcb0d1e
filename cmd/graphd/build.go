package main

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// unknownVersion is the version of a build of which nothing is recorded.
const unknownVersion = "dev"

// shownHash is how many digits of a commit a version has.
const shownHash = 12

// buildVersion is what the linker was told; else the module's version, when the
// module was installed or its commit has a tag; else the commit, with -dirty when
// something was changed since; else unknownVersion.
func buildVersion(linked string, read func() (*debug.BuildInfo, bool)) string {
	if linked != "" {
		return linked
	}
	info, ok := read()
	if !ok {
		return unknownVersion
	}
	released := strings.TrimSuffix(info.Main.Version, "+dirty")
	revision, dirty := settingOf(info, "vcs.revision"), ""
	if settingOf(info, "vcs.modified") == "true" {
		dirty = "-dirty"
	}
	switch {
	case revision == "" && released != "" && released != "(devel)":
		return info.Main.Version // go install module@version
	case revision != "" && released != "" && released != "(devel)" && !drawnFromCommit.MatchString(released):
		return released + dirty
	case revision != "":
		return revision[:min(len(revision), shownHash)] + dirty
	}
	return unknownVersion
}

// drawnFromCommit are the versions that Go makes for commits without a tag:
// v0.0.0-20261122185003-3f988d6abcde.
var drawnFromCommit = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$`)

// settingOf is what the Go tool recorded of a build under a key, "" when nothing.
func settingOf(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
