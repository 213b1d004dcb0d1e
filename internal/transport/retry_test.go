package transport_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// readPythonReasons reads a set of reasons from the Python client.
func readPythonReasons(t *testing.T, name string) map[string]bool {
	t.Helper()
	source, err := os.ReadFile("../../sdk/python/src/graphd/transport/backoff.py")
	require.NoError(t, err)
	set := regexp.MustCompile(`(?s)\n` + name + ` = \{(.*?)\}`).FindStringSubmatch(string(source))
	require.NotNil(t, set, "backoff.py has no %s", name)
	reasons := make(map[string]bool)
	for _, word := range regexp.MustCompile(`"([A-Z_]+)"`).FindAllStringSubmatch(set[1], -1) {
		reasons[word[1]] = true
	}
	return reasons
}

// Both clients repeat calls for the same reasons.
func TestBothClientsKnowWhatIsRetryable(t *testing.T) {
	again, told := readPythonReasons(t, "_RETRYABLE"), readPythonReasons(t, "_NOT_RETRYABLE")
	reasons := 0
	for _, row := range reason.Table() {
		if row.Code != codes.Unavailable && row.Code != codes.ResourceExhausted {
			require.False(t, again[row.Reason] || told[row.Reason], "%s does not pass", row.Reason)
			continue
		}
		reasons++
		retried, known := client.IsRetryable(row.Reason)
		require.True(t, known, "the command line does not know %s", row.Reason)
		require.NotEqual(t, again[row.Reason], told[row.Reason], "Python has to know %s, once", row.Reason)
		require.Equal(t, retried, again[row.Reason], "the clients differ about %s", row.Reason)
		if strings.HasPrefix(row.Reason, "STORE_") || row.Reason == "OUTCOME_UNKNOWN" {
			require.Equal(t, row.Reason != "STORE_FULL", retried, row.Reason)
		}
	}
	require.Equal(t, reasons, len(again)+len(told), "Python knows a reason that is not in the table")
}
