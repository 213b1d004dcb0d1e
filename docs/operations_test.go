package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// readOperationsPages reads all pages about running a server.
func readOperationsPages(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, page := range []string{"operations.md", "limits.md", "redis.md", "sqlite.md", "encryption.md", "troubleshooting.md"} {
		all.WriteString(read(t, "docs", page))
	}
	return all.String()
}

// Alarms are made of what the page says, so it names metrics that exist, and
// all of them.
func TestOperationsPageHasTheMetrics(t *testing.T) {
	page, code := read(t, "docs", "operations.md"), read(t, "internal", "telemetry", "metrics.go")+read(t, "internal", "telemetry", "tenants.go")+read(t, "internal", "telemetry", "webhooks.go")
	named := regexp.MustCompile("`(graphd_[a-z_]+)`").FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		require.Contains(t, code, `"`+m[1]+`"`, "no such metric")
	}
	for _, m := range regexp.MustCompile(`"(graphd_[a-z_]+)"`).FindAllStringSubmatch(code, -1) {
		require.Contains(t, page, "`"+m[1]+"`", "docs/operations.md lacks a metric")
	}
}

func TestOperationsPagesHaveFlagsThatExist(t *testing.T) {
	page := read(t, "docs", "operations.md") + read(t, "docs", "limits.md") + read(t, "docs", "sqlite.md")
	code := read(t, "internal", "server", "options.go") + read(t, "internal", "server", "limits.go") +
		read(t, "internal", "server", "graph_options.go") + read(t, "internal", "server", "value_options.go") +
		read(t, "internal", "server", "store_options.go") + read(t, "internal", "server", "caller_options.go") +
		read(t, "internal", "server", "audit_options.go") + read(t, "internal", "server", "quota_options.go") +
		read(t, "internal", "server", "webhook_options.go") + read(t, "internal", "server", "link_options.go") + read(t, "internal", "server", "http_options.go") + read(t, "internal", "server", "langgraph_options.go") +
		read(t, "internal", "server", "sign_in_options.go") + read(t, "internal", "server", "proxy_options.go") +
		read(t, "internal", "server", "endpoint_tls_options.go") + read(t, "internal", "server", "redis_tls_options.go")
	for _, m := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(page, -1) {
		require.Contains(t, code, `"`+m[1]+`"`, "no such option")
	}
}

func TestLimitsPageHasAllLimits(t *testing.T) {
	page := read(t, "docs", "limits.md") + read(t, "docs", "sqlite.md")
	code := read(t, "internal", "server", "limits.go") + read(t, "internal", "server", "graph_options.go") +
		read(t, "internal", "server", "value_options.go") +
		read(t, "internal", "server", "store_options.go")
	for _, m := range regexp.MustCompile(`&o\.[\w.]+, "([a-z-]+)"`).FindAllStringSubmatch(code, -1) {
		require.Contains(t, page, "`--"+m[1]+"`", "docs/limits.md lacks a limit")
	}
}

func TestOperationsPagesHaveAllOptions(t *testing.T) {
	page := readOperationsPages(t)
	found := regexp.MustCompile(`&o\.[\w.]+, "([a-z-]+)"`).FindAllStringSubmatch(read(t, "internal", "server", "options.go"), -1)
	require.Greater(t, len(found), 15)
	for _, m := range found {
		require.Regexp(t, "`[^`]*--"+m[1]+"\\b", page, "the pages of operations lack an option")
	}
}

// People search for what they see: the words of the messages are the program's.
func TestTroubleshootingPageQuotesMessages(t *testing.T) {
	table := read(t, "docs", "troubleshooting.md")
	code := read(t, "internal", "checkpoint", "redis", "setup", "server.go") +
		read(t, "internal", "checkpoint", "redis", "setup", "metadata.go") +
		read(t, "internal", "server", "server.go") +
		read(t, "internal", "server", "store.go") + read(t, "internal", "checkpoint", "seal", "key_check.go") +
		read(t, "internal", "web", "guard.go") + read(t, "internal", "web", "signin", "refusal.go") + read(t, "internal", "web", "signin", "flow.go")
	for _, words := range []string{
		"the store can't be opened: ", " did not answer while the server ", "the server refuses: ", "the server is Redis ",
		"the server is a replica and takes no changes", "maxmemory-policy is ", ", so the server may throw threads away",
		"the database holds ", " keys, and none of graphd under the prefix ", "the store has format ", ", this graphd knows up to ",
		"the store was made with ", " partitions, which never change", ", this graphd writes ", "the store is being migrated from format ",
		" partitions are gone with their threads", "there are threads under the prefix ", "can't listen: ",
		"the drain timeout has passed; what was left was cut", "that the store was sealed with, ", ", are not given",
		"is not the one that the store knows by this id", "the server has no name ", "pages of another site may not call",
		"a sign-in has failed", "The identity provider does not answer as it should", "This server does not accept what the identity provider says of you",
		"The identity provider says more of you than a session has room for", "This sign-in was not begun in this browser, it took too long, or it was used before",
	} {
		require.Contains(t, table, words)
		require.Contains(t, code, words)
	}
	for _, m := range regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)+)`").FindAllStringSubmatch(readOperationsPages(t), -1) {
		if m[1] != "NOT_SERVING" && !strings.HasPrefix(m[1], "GRAPHD_") {
			require.Contains(t, read(t, "docs", "protocol.md")+read(t, "docs", "http.md")+read(t, "docs", "workers.md")+read(t, "docs", "worker-protocol.md"), "`"+m[1]+"`")
		}
	}
}
