package harness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// ReadLedger reads the file to which workers append every effect as a line of JSON.
// skipTorn leaves out lines of workers that were killed while they wrote.
func ReadLedger[Entry any](path string, skipTorn bool) ([]Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	defer func() { _ = file.Close() }()
	var all []Entry
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if skipTorn && !strings.HasSuffix(lines.Text(), "}") {
			continue
		}
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d of the ledger: %w: %s", len(all)+1, err, lines.Text())
		}
		all = append(all, e)
	}
	return all, lines.Err()
}
