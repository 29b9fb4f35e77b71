// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/controlplane"
)

// message is one line of the protocol that doc.go specifies.
type message struct {
	State                 string   `json:"state"`
	Component             string   `json:"component,omitempty"`
	Kubeconfig            string   `json:"kubeconfig,omitempty"`
	Servers               []string `json:"servers,omitempty"`
	DataDir               string   `json:"dataDir,omitempty"`
	CAFile                string   `json:"caFile,omitempty"`
	CAKeyFile             string   `json:"caKeyFile,omitempty"`
	ServiceAccountKeyFile string   `json:"serviceAccountKeyFile,omitempty"`
	Reason                string   `json:"reason,omitempty"`
	Error                 string   `json:"error,omitempty"`
	Elapsed               string   `json:"elapsed,omitempty"`
}

// reporter writes messages. It is safe for concurrent use.
type reporter struct {
	mu     sync.Mutex
	out    io.Writer
	began  time.Time
	failed bool
}

// fail reports an error; only the first counts, the others follow from it.
func (r *reporter) fail(err error) {
	r.mu.Lock()
	first := !r.failed
	r.failed = true
	r.mu.Unlock()
	if first {
		r.send(message{State: "failed", Error: err.Error()})
	}
}

func (r *reporter) component(name, state string) {
	r.send(message{State: state, Component: name, Elapsed: r.elapsed()})
}

func (r *reporter) ready(cp *controlplane.ControlPlane) {
	r.send(message{
		State:                 "ready",
		Kubeconfig:            cp.KubeconfigFile(),
		Servers:               cp.ServerURLs(),
		DataDir:               cp.DataDir(),
		CAFile:                cp.CAFile(),
		CAKeyFile:             cp.CAKeyFile(),
		ServiceAccountKeyFile: cp.ServiceAccountKeyFile(),
		Elapsed:               r.elapsed(),
	})
}

func (r *reporter) elapsed() string { return fmt.Sprintf("%.1fs", time.Since(r.began).Seconds()) }

// send drops the message if no process reads it any more: a parent that is gone is no
// reason to stop in the middle of stopping.
func (r *reporter) send(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(r.out).Encode(m)
}
