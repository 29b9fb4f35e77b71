// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// stampAnnotation carries the moment of a write in nanoseconds, or readyStamp.
const stampAnnotation = "bench.setpoint.io/written"

// readyStamp begins the stamps by which is seen that a side tells of changes.
const readyStamp = "ready-"

// watcher is a process that tells of changes, a line of JSON each.
type watcher struct {
	*process
	name  string
	port  int // of its /debug/pprof
	ready chan struct{}
	read  chan struct{} // closed when its output has ended

	lines, bytes atomic.Int64
	ledger       atomic.Pointer[ledger] // nil: not counted

	mu    sync.Mutex
	wrong error // a line that cannot be read
}

// startWatcher starts a command that parse understands the lines of. It appends to args
// a port for /debug/pprof.
func startWatcher(dir, name, binary string, parse func([]byte) (told, error), args ...string) (*watcher, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	errorsTo, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = errorsTo.Close() }() // the child has its own
	stdout, childs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = childs.Close() }()
	command := exec.CommandContext(context.Background(), binary, append(args, "--plain-port", strconv.Itoa(port))...) // ended by stop
	command.Stdout, command.Stderr = childs, errorsTo
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w; is it built? see \"make help\"", binary, err), stdout.Close())
	}
	w := &watcher{
		process: &process{command: command, output: errorsTo.Name(), ended: make(chan struct{})},
		name:    name, port: port, ready: make(chan struct{}), read: make(chan struct{}),
	}
	go func() { defer close(w.ended); _ = command.Wait() }()
	go func() {
		defer close(w.read)
		defer func() { _ = stdout.Close() }()
		w.follow(stdout, parse)
	}()
	return w, nil
}

// follow reads what the process tells, until it ends.
func (w *watcher) follow(from io.Reader, parse func([]byte) (told, error)) {
	var ready sync.Once
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		now := time.Now()
		if err != nil {
			return // the process has ended
		}
		w.lines.Add(1)
		w.bytes.Add(int64(len(line)))
		t, err := parse(line)
		switch {
		case err != nil:
			w.fail(fmt.Errorf("%s printed a line that cannot be read: %w: %.200s", w.name, err, line))
		case strings.HasPrefix(t.stamp, readyStamp):
			ready.Do(func() { close(w.ready) })
		default:
			if l := w.ledger.Load(); l != nil {
				l.tell(w.name, t, now)
			}
		}
	}
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong == nil {
		w.wrong = err
	}
}

// well returns an error if the process has ended or printed a line that cannot be read.
func (w *watcher) well() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.wrong, w.alive())
}

func (w *watcher) end() {
	w.stop()
	<-w.read
}

// parseSetpoint reads a line of "setpoint watch -o json".
func parseSetpoint(line []byte) (told, error) {
	var e struct {
		Schema    string
		Verb      event.Verb
		Namespace string
		Name      string
		Fields    []struct {
			Path string
			To   any
		}
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return told{}, err
	}
	if e.Schema != event.Schema {
		return told{}, fmt.Errorf("its schema is %q, want %q", e.Schema, event.Schema)
	}
	t := told{verb: e.Verb, key: e.Namespace + "/" + e.Name}
	for _, f := range e.Fields {
		if f.Path == "metadata.annotations["+stampAnnotation+"]" {
			t.stamp, _ = f.To.(string)
		}
	}
	return t, nil
}

// parseKubewatch reads a line of peers/clientgo/kubewatch.
func parseKubewatch(line []byte) (told, error) {
	var e struct{ Namespace, Name, Reason, Written string }
	if err := json.Unmarshal(line, &e); err != nil {
		return told{}, err
	}
	if e.Reason == "" || e.Name == "" {
		return told{}, errors.New("it has no reason or no name")
	}
	return told{verb: event.Verb(strings.ToLower(e.Reason)), key: e.Namespace + "/" + e.Name, stamp: e.Written}, nil
}

// ask reads from the process's own server.
func (w *watcher) ask(ctx context.Context, path string) ([]byte, error) {
	return askLocal(ctx, w.name, w.port, path)
}

// askLocal reads from a process of this machine, by a connection that is closed then:
// it is none of those that are counted.
func askLocal(ctx context.Context, name string, port int, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", name, err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s for %s: %w", name, path, err)
	}
	return content, nil
}

// heap is what a collection leaves of the process's heap, in MB of a million bytes.
func (w *watcher) heap(ctx context.Context) (float64, error) {
	text, err := w.ask(ctx, "/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	return heapOf(string(text))
}

func heapOf(text string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, "# HeapAlloc = "); found {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return bytes / 1e6, err
		}
	}
	return 0, errors.New("reading the size of a heap: no HeapAlloc in its profile")
}

// freePort is a port on which no process listens just now.
func freePort() (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("looking for a port: %s has none", listener.Addr())
	}
	return address.Port, nil
}
