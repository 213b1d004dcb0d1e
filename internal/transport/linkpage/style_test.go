package linkpage_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColoursAreThoseOfThePage compares the colours of links with those of the page for browsers.
func TestColoursAreThoseOfThePage(t *testing.T) {
	links, err := os.ReadFile("style.css")
	require.NoError(t, err)
	page, err := os.ReadFile("../../../page/src/style.css")
	require.NoError(t, err)
	light, dark, _ := strings.Cut(string(links), "@media(prefers-color-scheme:dark)")
	dark, _, _ = strings.Cut(dark, "\n")
	names := 0
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\);`).FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(string(links), "var(--"+m[1]+")") {
			continue // links do without it
		}
		names++
		require.Contains(t, light, "--"+m[1]+":"+m[2], "light")
		require.Contains(t, dark, "--"+m[1]+":"+m[3], "dark")
	}
	require.Greater(t, names, 12)
}
