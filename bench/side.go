// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// The sides that are measured.
const (
	setpointSide  = "setpoint"
	clientGoSide  = "client-go"
	transformSide = "client-go-transform" // with a transform that drops managedFields
	indexerSide   = "client-go-indexer"   // its store alone, written without an informer
)

// sideSpec is what a process of its own is to measure. Heap and CPU of a process
// are then those of one side, and no other's.
type sideSpec struct {
	Case    string
	Side    string
	Kind    string
	Server  string        // its address, or
	Tape    string        // a recorded tape, played within the process
	Objects int           // that the tape is played with
	Events  int           // changes to measure with
	Span    time.Duration // how long a rate is measured
	Budget  int64         // bytes of decoded objects that Setpoint may keep; 0: as it comes
	Profile string        // folder for CPU profiles of its steps; empty: none

	// Of loops alone.
	Kubeconfig string // of a real server, instead of Server
	Namespace  string // to work in
	Paced      int    // changes that come one by one
	Rate       int    // of these, a second
	Beside     string // the server of a second loop in the same process
	Workers    int

	Writes int // of a run, of "consistency" alone
}

// readings are what was measured, by name.
type readings map[string]float64

// sideCase is the hidden case that a measuring process runs.
const sideCase = "side"

// endWith ends the process when the one that started it ends, however it does: the system closes
// its end of the pipe then. A peer whose server is gone would retry for ever, on a processor that
// the next measurement needs.
func endWith(lifeline io.Reader) {
	_, _ = io.Copy(io.Discard, lifeline) // an error is the end as well
	os.Exit(1)
}

// runSide measures in this process, as args say, and writes the readings to out.
func runSide(ctx context.Context, args []string, out io.Writer) error {
	var s sideSpec
	if len(args) != 1 {
		return errors.New("measuring a side: want one argument, the specification")
	}
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return fmt.Errorf("measuring a side: %w", err)
	}
	measure := map[string]func(context.Context, *sideSpec) (readings, error){
		"cache": measureCache, "readers": measureReaders, "lists": measureRepeatedLists, "relist": measureRelist,
		"loop": measureLoop, "loop-pairs": measureLoopPairs, "loop-write": measureLoopWrites,
		"consistency": measureConsistency, "informers": measureInformers,
	}[s.Case]
	if measure == nil {
		return fmt.Errorf("measuring a side: there is no case %q", s.Case)
	}
	found, err := measure(ctx, &s)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(found)
}

// sideLimit is when a side counts as stuck.
const sideLimit = 15 * time.Minute

// run measures a side in a process of its own.
func (s *sideSpec) run(ctx context.Context) (readings, error) {
	ctx, cancel := context.WithTimeout(ctx, sideLimit)
	defer cancel()
	spec, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting a process to measure %s in: %w", s.Side, err)
	}
	command := exec.CommandContext(ctx, self, sideCase, string(spec))
	var out, trouble bytes.Buffer
	command.Stdout, command.Stderr = &out, &trouble
	if _, err := command.StdinPipe(); err != nil { // which endWith reads; Run closes it after the end
		return nil, fmt.Errorf("starting a process to measure %s in: %w", s.Side, err)
	}
	if err := command.Run(); err != nil {
		text := trouble.Bytes()
		return nil, fmt.Errorf("measuring %s of %s: %w: %s", s.Side, s.Kind, err, text[max(0, len(text)-2000):])
	}
	var found readings
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return nil, fmt.Errorf("measuring %s of %s: reading what was measured: %w", s.Side, s.Kind, err)
	}
	return found, nil
}

// serve plays a tape on a socket of this machine while f runs.
func serve(ctx context.Context, h http.Handler, f func(address string) error) (err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serving a tape: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ends with what Close makes of it
	}()
	defer func() {
		err = errors.Join(err, server.Close())
		<-ended
	}()
	return f("http://" + listener.Addr().String())
}

// server is where a side reads from, and how it says what should happen next.
type server struct {
	config *rest.Config
	client *http.Client
	replay *replay // nil: it is in another process
}

func (s *sideSpec) server() (*server, error) {
	if s.Tape == "" {
		// What a client may send is not what is measured: no limit of its own rate.
		return &server{config: &rest.Config{Host: s.Server, QPS: -1}, client: http.DefaultClient}, nil
	}
	k, err := kindNamed(s.Kind)
	if err != nil {
		return nil, err
	}
	t, err := load(k, s.Tape)
	if err != nil {
		return nil, err
	}
	r, err := newReplay(t, s.Objects)
	if err != nil {
		return nil, err
	}
	return within(r), nil
}

// within is a server in this process, which no socket leads to.
func within(r *replay) *server {
	return &server{
		config: &rest.Config{Host: "http://within.this.process.invalid", Transport: r, QPS: -1},
		client: &http.Client{Transport: r}, replay: r,
	}
}

// ask has the server publish or expire changes, and returns the version of the
// last one.
func (s *server) ask(ctx context.Context, what string, changes int) (uint64, error) {
	url := fmt.Sprintf("%s%s?%s=%d", s.config.Host, controlPath, what, changes)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking the server to %s: %w", what, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("asking the server to %s: %w", what, err)
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("asking the server to %s: %s: %s", what, response.Status, content)
	}
	return strconv.ParseUint(string(content), 10, 64)
}

// processCPU is the CPU time that this process has used, in seconds.
func processCPU() (float64, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds(), nil
}
