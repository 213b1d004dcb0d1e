package main

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// unknownVersion is the version of a build of which nothing is recorded.
const unknownVersion = "dev"

// shownHashDigits is how many digits of a commit a version has.
const shownHashDigits = 12

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

// buildSetting is what the Go tool recorded of a build under a key, "" when nothing.
func buildSetting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
