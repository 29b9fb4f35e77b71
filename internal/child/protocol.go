// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// message is one line of the child's standard output. Fields and states that are
// not known here are of a newer child, and ignored.
type message struct {
	State      string   `json:"state"`
	Component  string   `json:"component"`
	Kubeconfig string   `json:"kubeconfig"`
	Servers    []string `json:"servers"`
	DataDir    string   `json:"dataDir"`
	CAFile     string   `json:"caFile"`
	CAKeyFile  string   `json:"caKeyFile"`
	TokenKey   string   `json:"serviceAccountKeyFile"`
	Error      string   `json:"error"`
	Elapsed    string   `json:"elapsed"`
}

// maxLine bounds one message, in bytes; the longest is an error with a path or two.
const maxLine = 1 << 20

// follow reads messages until the child closes its standard output. It calls ready
// once, and returns the error that the child reported, if it did.
func follow(stdout io.Reader, progress func(Progress), ready func(Endpoints)) error {
	var failed error
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			// Going on would leave the child blocked on a full pipe.
			failed = fmt.Errorf("understanding the control plane: %w in %.100q; are the two binaries of one build?", err, lines.Text())
			continue
		}
		switch {
		case m.State == "failed":
			failed = errors.New(m.Error)
		case m.State == "ready" && m.Component == "":
			ready(Endpoints{
				Kubeconfig: m.Kubeconfig, Servers: m.Servers, DataDir: m.DataDir,
				CAFile: m.CAFile, CAKeyFile: m.CAKeyFile, ServiceAccountKeyFile: m.TokenKey,
			})
		case m.State == "ready" || m.State == "starting":
			elapsed, _ := time.ParseDuration(m.Elapsed) // a step without a time still counts
			progress(Progress{Component: m.Component, Ready: m.State == "ready", Elapsed: elapsed})
		}
	}
	if err := lines.Err(); err != nil {
		_, _ = io.Copy(io.Discard, stdout) // so that the child does not block
		return errors.Join(failed, fmt.Errorf("reading what the control plane reports: %w", err))
	}
	return failed
}
