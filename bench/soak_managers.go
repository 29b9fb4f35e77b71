// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// soakManager is one of two that elect a leader.
type soakManager struct {
	*process
	name string
	port int // of its metrics and profiles, on 127.0.0.1
}

// startSoakManager starts a manager. Its output goes to a file of its own.
func (s *soakRun) startSoakManager(name string) (*soakManager, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	endpoints := s.server.Endpoints()
	p, err := startProcess(dir, filepath.Join(s.bin, "setpoint"), "manager", "--kubeconfig", s.kubeconfig,
		"--secure-port", "0", "--plain-port", strconv.Itoa(port),
		"--service-account-private-key-file", endpoints.ServiceAccountKeyFile, "--root-ca-file", endpoints.CAFile,
		"--cluster-signing-cert-file", endpoints.CAFile, "--cluster-signing-key-file", endpoints.CAKeyFile)
	if err != nil {
		return nil, err
	}
	return &soakManager{process: p, name: name, port: port}, nil
}

// leads is whether the manager holds the lease.
func (m *soakManager) leads(ctx context.Context) bool {
	text, err := askLocal(ctx, m.name, m.port, "/metrics")
	if err != nil {
		return false // it starts, or ends
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "leader_election_master_status{") {
			return strings.HasSuffix(strings.TrimSpace(line), " 1")
		}
	}
	return false
}

// superviseManagers restarts those that have ended, as a kubelet would: one that
// cannot renew its lease in time ends.
func (s *soakRun) superviseManagers() error {
	for i, m := range s.managers {
		if m.alive() == nil {
			continue
		}
		s.restarts++
		fresh, err := s.startSoakManager(fmt.Sprintf("manager-%d", s.restarts))
		if err != nil {
			return err
		}
		s.managers[i] = fresh
	}
	return nil
}

// leader waits until one manager leads and the other does not, and returns them.
func (s *soakRun) leader(ctx context.Context) (leads, standsBy *soakManager, err error) {
	err = poll(ctx, "one manager to lead", func() (bool, error) {
		if err := s.superviseManagers(); err != nil {
			return false, err
		}
		a, b := s.managers[0], s.managers[1]
		leads, standsBy = a, b
		if b.leads(ctx) {
			leads, standsBy = b, a
		}
		return leads.leads(ctx) && !standsBy.leads(ctx), nil
	})
	return leads, standsBy, err
}

// handOver ends the manager that leads, in turns as an upgrade and as a crash do.
func (s *soakRun) handOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, soakWait)
	defer cancel()
	leads, _, err := s.leader(ctx)
	if err != nil {
		return err
	}
	s.handovers++
	if s.handovers%2 == 0 {
		if err := leads.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("killing a manager: %w", err)
		}
		<-leads.ended
	} else {
		leads.stop()
	}
	return s.superviseManagers()
}

// soakWait is how long anything may take to come to rest.
const soakWait = 3 * time.Minute
