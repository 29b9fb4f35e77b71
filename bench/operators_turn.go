// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"
)

// turn runs a binary until it has done that many reconciles, and is at rest. The readings are its heap
// after a collection, its resident memory at rest and at its peak, its CPU time, and how long the reconciles took.
func (f *operated) turn(ctx context.Context, binary string, reconciles int) (found readings, sent requestCounts, err error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	certificates, err := f.certificates()
	if err != nil {
		return nil, nil, err
	}
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, nil, err
	}
	at := addresses{metrics: port(ports[0]), profiles: port(ports[1]), webhook: port(ports[2])}
	before, err := f.managersRequests(ctx)
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	p, err := startProcess(f.dir, binary, append(f.flags(at, certificates), "--kubeconfig", f.kubeconfig)...)
	if err != nil {
		return nil, nil, err
	}
	defer p.stop()
	err = poll(ctx, "the reconciles of all objects", func() (bool, error) {
		n, err := reconciled(ctx, "http://"+at.metrics.address()+"/metrics", f.controller)
		if err != nil {
			return false, p.alive() // it is not served yet
		}
		return n >= float64(reconciles), nil
	})
	if err != nil {
		return nil, nil, err
	}
	wall := time.Since(began).Seconds()
	if err := p.idle(ctx); err != nil {
		return nil, nil, err
	}
	after, err := f.managersRequests(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, err = atRest(ctx, p, "http://"+at.profiles.address()+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return nil, nil, err
	}
	found["wall"] = wall
	return found, after.since(before), nil
}

// atRest reads what a process has used. Its heap comes last, since to collect it costs CPU.
func atRest(ctx context.Context, p *process, heap string) (readings, error) {
	cpu, err1 := p.cpu()
	memory, err2 := p.memory()
	peak, err3 := p.peakMemory()
	text, err4 := fetch(ctx, heap)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(text), "\n# HeapAlloc = ")
	line, _, _ := strings.Cut(rest, "\n")
	alloc, err := strconv.ParseFloat(line, 64)
	if err != nil {
		return nil, fmt.Errorf("reading the heap profile: %w", err)
	}
	return readings{"heap": alloc / 1e6, "cpu": cpu, "memory": memory, "peak": peak}, nil
}

// reconciled returns how many reconciles of a controller a manager has counted.
func reconciled(ctx context.Context, url, controller string) (n float64, err error) {
	text, err := fetch(ctx, url)
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(series, "controller_runtime_reconcile_total{") && strings.Contains(series, `controller="`+controller+`"`) {
			one, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the metrics of the manager: %w", err)
			}
			n += one
		}
	}
	return n, nil
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return text, err
}

// certificates returns a folder with a certificate for a webhook server, which is not called.
func (f *operated) certificates() (string, error) {
	dir := filepath.Join(f.dir, "certificates")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
}

// freePorts returns ports of the loopback interface that were free a moment ago, for programs that take no 0.
func freePorts(ctx context.Context, n int) (ports []string, err error) {
	for range n {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }() // all are held until all are there
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
