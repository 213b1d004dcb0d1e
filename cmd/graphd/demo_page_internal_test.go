package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// interruptList is an answer of ListInterrupts.
type interruptList struct {
	Interrupts []struct {
		ThreadID    string `json:"threadId"`
		InterruptID string `json:"interruptId"`
	} `json:"interrupts"`
}

func TestTheDemoIsAnsweredOnThePage(t *testing.T) {
	opened := &openedPages{}
	demo := commandRunner{isErrTerminal: true, openBrowser: opened.openBrowser}.launchCommand(t, "demo", "--page")
	link := demo.out.waitForMatch(t, regexp.MustCompile(`answer on the page\n  (http://127\.0\.0\.1:\d+/inbox/demo-\S+)\n`))
	demo.out.waitForMatch(t, regexp.MustCompile(`graphd resume demo-\S+ --server 127\.0\.0\.1:\d+\n`))
	demo.out.waitForMatch(t, regexp.MustCompile(`Ctrl-C ends the demo`))
	browser := newBrowser(t, nil)
	require.Contains(t, browser.readPage(t, link), `<script type="module"`)

	stream := openStream(t, browser, link) // as the page has one
	defer func() { _ = stream.Close() }()
	status, answer := browser.callMethod(t, link, "InterruptService/ListInterrupts", `{}`)
	require.Equal(t, http.StatusOK, status, answer)
	var listed interruptList
	require.NoError(t, json.Unmarshal([]byte(answer), &listed))
	require.Len(t, listed.Interrupts, 1)
	q := listed.Interrupts[0]
	require.True(t, strings.HasSuffix(link, "/inbox/"+q.ThreadID+"/"+q.InterruptID), link)
	status, answer = browser.callMethod(t, link, "GraphService/ResumeRun", `{"resume": {"threadId": "`+q.ThreadID+`", "responses": [
		{"interruptId": "`+q.InterruptID+`", "value": {"json": "{\"decision\":\"approved_with_conditions\",\"conditions\":\"5% fee\"}"}}]}}`)
	require.Equal(t, http.StatusOK, status, answer)

	require.Equal(t, exit.CodeDone, demo.waitForEnd(t), demo.complaints)
	require.Equal(t, []string{link}, opened.list())
	require.Contains(t, demo.out.String(), "final response\n  Your refund has been approved under this condition: 5% fee\n")
	require.Contains(t, demo.out.String(), "checkpoints, newest first")
	require.Contains(t, demo.out.String(), "the demo ends in 0s")
	require.Empty(t, demo.complaints.String())
}

// openStream follows the inbox as the page does.
func openStream(t *testing.T, browser *browserClient, page string) io.Closer {
	t.Helper()
	origin := regexp.MustCompile(`^https?://[^/]+`).FindString(page)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin+"/graphd.v1.InterruptService/WatchInterrupts", strings.NewReader("\x00\x00\x00\x00\x02{}"))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/connect+json")
	response, err := browser.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response.Body
}

func TestADemoOnThePageEndsWithCtrlC(t *testing.T) {
	demo := commandRunner{}.launchCommand(t, "demo", "--page")
	demo.out.waitForMatch(t, regexp.MustCompile(`Ctrl-C ends the demo`))
	demo.interrupt()
	require.Equal(t, exit.CodeWaiting, demo.waitForEnd(t), demo.complaints)
	require.Regexp(t, `ended without an answer, and nothing of it is stored; play another with\n  graphd demo --page\n$`, demo.out.String())
	require.Empty(t, demo.complaints.String())

	opened := &openedPages{}
	c := commandRunner{isErrTerminal: true, openBrowser: opened.openBrowser, demoLinger: time.Hour}
	demo = c.launchCommand(t, "demo", "--page", "--request", "When do you open?") // no person is asked
	demo.out.waitForMatch(t, regexp.MustCompile(`the demo ends in 1h0m0s, Ctrl-C ends it at once\n`))
	thread := demo.out.waitForMatch(t, regexp.MustCompile(`the page shows it: (http://127\.0\.0\.1:\d+/threads/demo-\S+)\n`))
	demo.interrupt()
	require.Equal(t, exit.CodeDone, demo.waitForEnd(t), demo.complaints)
	require.Equal(t, []string{thread}, opened.list())
}

func TestADemoOnThePageEndsAsItsRun(t *testing.T) {
	for _, call := range []struct {
		method string
		code   int
		text   string
	}{
		{"GraphService/CancelRun", exit.CodeFailed, "CANCELLED"},
		{"ThreadService/DeleteThread", exit.CodeError, "the thread was deleted"},
	} {
		t.Run(call.method, func(t *testing.T) {
			demo := commandRunner{}.launchCommand(t, "demo", "--page")
			link := demo.out.waitForMatch(t, regexp.MustCompile(`(http://127\.0\.0\.1:\d+/inbox/demo-\S+)\n`))
			thread := strings.Split(link, "/")[4]
			status, answer := newBrowser(t, nil).callMethod(t, link, call.method, `{"threadId": "`+thread+`"}`)
			require.Equal(t, http.StatusOK, status, answer)
			require.Equal(t, call.code, demo.waitForEnd(t), demo.complaints)
			require.Contains(t, demo.out.String(), call.text)
		})
	}
}

func TestADemoOnThePageRefusesOtherAnswers(t *testing.T) {
	for _, more := range [][]string{{"--answer", "{}"}, {"--store", "sqlite:x.db"}} {
		r := commandRunner{}.runCommand(t, append([]string{"demo", "--page"}, more...)...)
		require.Equal(t, exit.CodeUsage, r.code)
		require.Contains(t, r.err, "contradict each other")
	}
}
