// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// profiler fetches profiles of a manager while it is measured, from /debug/pprof. The zero profiler fetches nothing.
type profiler struct {
	dir  string // where the files are written
	side string
	base string // URL of the manager
}

// profileSeconds is how long one CPU profile lasts. A longer part has several files, which "go tool pprof" adds up.
const profileSeconds = 5

// newProfiler returns a profiler, and the flags by which a manager serves its profiles to it.
func newProfiler(dir, side string) (p profiler, flags []string, err error) {
	if dir == "" || side == plainSide {
		return profiler{}, nil, nil
	}
	port, err := freePort()
	if err != nil {
		return p, nil, err
	}
	p = profiler{dir: dir, side: side, base: "http://127.0.0.1:" + strconv.Itoa(port)}
	if side != managerSide {
		return p, []string{"--plain-port", strconv.Itoa(port)}, nil
	}
	p.base = "https://127.0.0.1:" + strconv.Itoa(port)
	return p, []string{"--secure-port", strconv.Itoa(port), "--authorization-always-allow-paths", "/debug/*"}, nil
}

// during fetches CPU profiles until end is called, and then one of the heap. Their names begin with that of the part.
func (p profiler) during(ctx context.Context, part string) (end func() error) {
	if p.base == "" {
		return func() error { return nil }
	}
	ended, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for i := 1; err == nil; i++ {
			select {
			case <-ended:
				done <- p.fetch(ctx, "heap", fmt.Sprintf("%s-%s-heap.pb.gz", p.side, part))
				return
			default:
			}
			err = p.fetch(ctx, fmt.Sprintf("profile?seconds=%d", profileSeconds), fmt.Sprintf("%s-%s-cpu-%d.pb.gz", p.side, part, i))
		}
		done <- err
	}()
	return func() error { close(ended); return <-done }
}

// How often, and after which pause, a request to a manager that does not listen yet is retried.
const (
	startTries = 300
	startPause = 10 * time.Millisecond
)

// fetch writes one profile to a file.
func (p profiler) fetch(ctx context.Context, profile, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/debug/pprof/"+profile, http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // G402: the peer makes its own certificate, and listens on 127.0.0.1
	}}
	response, err := client.Do(request)
	// A manager that was just started does not listen yet.
	for tries := 0; err != nil && errors.Is(err, syscall.ECONNREFUSED) && tries < startTries; tries++ {
		if err := pause(ctx, startPause); err != nil {
			return err
		}
		response, err = client.Do(request)
	}
	if err != nil {
		return fmt.Errorf("fetching a profile of %s: %w", p.side, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("fetching a profile of %s: %s", p.side, response.Status)
	}
	f, err := os.Create(filepath.Join(p.dir, file))
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	_, err = io.Copy(f, response.Body)
	return errors.Join(err, f.Close())
}

// folderFlag defines a flag for a folder of profiles, which is made when the flag is read: a profile that has no place ends a
// benchmark after minutes of measuring. An empty name is for no profiles.
func folderFlag(flags *flag.FlagSet, name string, dir *string, usage string) {
	flags.Func(name, usage, func(folder string) error {
		*dir = folder
		if folder == "" {
			return nil
		}
		return os.MkdirAll(folder, 0o755) //nolint:gosec // G301: what a benchmark finds is for all
	})
}
