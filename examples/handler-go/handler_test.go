package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphd-dev/graphd"
)

// program is the example as a process.
type program struct {
	t    *testing.T
	file string
	cmd  *exec.Cmd
	url  string
}

func start(t *testing.T, file string) *program {
	t.Helper()
	p := &program{t: t, file: file, cmd: exec.Command(os.Args[0], "--db", file, "--listen", "127.0.0.1:0")}
	p.cmd.Env = append(os.Environ(), programVariable+"=yes")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.url = strings.TrimSpace(strings.TrimPrefix(line, "serving "))
	t.Cleanup(p.kill)
	return p
}

// kill ends the process without a warning.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// send sends a message, and returns the status and the reply.
func (p *program) send(session, text string) (int, reply) {
	p.t.Helper()
	body, err := json.Marshal(message{session, text})
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := http.Post(p.url, "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var r reply
	said, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if response.StatusCode == http.StatusOK {
		err = json.Unmarshal(said, &r)
	} else {
		r.Text = string(said)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, r
}

// programVariable makes the test the program itself: it need not be built a second time.
const programVariable = "HANDLER_GO_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The question of an order survives a kill, and so does the answer: each message meets a new
// process.
func TestOrdersSurviveKills(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	for _, step := range []struct{ text, want, status string }{
		{"a lamp", "Pay 49.90 EUR for a lamp?", toBePaid},
		{"I confirm", "a lamp is paid, receipt ", paid},
		{"a sofa", "Pay 49.90 EUR for a sofa?", toBePaid},
		{"no", "The order of a sofa is cancelled.", cancelled},
	} {
		p := start(t, file)
		code, got := p.send("ana", step.text)
		if code != http.StatusOK || !strings.Contains(got.Text, step.want) || got.Status != step.status {
			t.Fatalf("%q: %d %+v", step.text, code, got)
		}
		p.kill()
	}
}

// Of many answers at once one wins, and the order is paid or cancelled once.
func TestOneAnswerWins(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "orders.db"))
	p.send("ben", "a chair")
	var all sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 8 {
		all.Go(func() {
			code, _ := p.send("ben", []string{"confirm", "no"}[i%2]+" "+time.Now().String())
			mu.Lock()
			defer mu.Unlock()
			codes[code]++
		})
	}
	all.Wait()
	if codes[http.StatusOK]+codes[http.StatusConflict] != 8 || codes[http.StatusOK] == 0 {
		t.Fatalf("%v", codes)
	}
}

func TestWrongMessages(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "orders.db"))
	if code, got := p.send("", "a chair"); code != http.StatusBadRequest || !strings.Contains(got.Text, "want") {
		t.Fatalf("%d %+v", code, got)
	}
	if code, got := p.send("a/b", "a chair"); code != http.StatusBadRequest || !strings.Contains(got.Text, "thread_id") {
		t.Fatalf("%d %+v", code, got)
	}
}

// While the engine is closed, a customer is told to try again.
func TestAClosedEngineIsNoMistakeOfTheCustomer(t *testing.T) {
	engine, err := graphd.Open(t.Context(), graphd.Memory(), newOrders())
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	(&handler{engine}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"session":"s","text":"tea"}`)))
	if w.Code != http.StatusServiceUnavailable {
		t.Fatal(w.Code, w.Body)
	}
}
