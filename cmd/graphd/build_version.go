package main

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// unknownVersion is the version of a build without recorded information.
const unknownVersion = "dev"

// shownHashDigits is the number of digits of a commit in a version.
const shownHashDigits = 12

// buildVersion returns the version that the linker set; else the module's version,
// when the module was installed or its commit has a tag; else the commit, with
// -dirty when the checkout had changes; else unknownVersion.
func buildVersion(linked string, read func() (*debug.BuildInfo, bool)) string {
	if linked != "" {
		return linked
	}
	info, ok := read()
	if !ok {
		return unknownVersion
	}
	released := strings.TrimSuffix(info.Main.Version, "+dirty")
	revision, dirty := buildSetting(info, "vcs.revision"), ""
	if buildSetting(info, "vcs.modified") == "true" {
		dirty = "-dirty"
	}
	switch {
	case revision == "" && released != "" && released != "(devel)":
		return info.Main.Version // go install module@version
	case revision != "" && released != "" && released != "(devel)" && !pseudoVersionPattern.MatchString(released):
		return released + dirty
	case revision != "":
		return revision[:min(len(revision), shownHashDigits)] + dirty
	}
	return unknownVersion
}

// pseudoVersionPattern matches the versions that Go makes for commits without a
// tag: v0.0.0-20261122185003-3f988d6abcde.
var pseudoVersionPattern = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$`)

// buildSetting returns the value that the Go tool recorded for a key, "" if there
// is none.
func buildSetting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
