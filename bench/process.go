// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a manager that is being measured.
type process struct {
	command *exec.Cmd
	output  string // a file
	ended   chan struct{}
}

// startProcess starts a command whose output goes to a file.
func startProcess(dir, name string, args ...string) (*process, error) {
	file, err := os.CreateTemp(dir, filepath.Base(name)+"-*.log") // there may be several of one name
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()                                 // the child has its own
	command := exec.CommandContext(context.Background(), name, args...) // ended by stop
	command.Stdout, command.Stderr = file, file
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w; is it built? see \"make help\"", name, err)
	}
	p := &process{command: command, output: file.Name(), ended: make(chan struct{})}
	go func() { defer close(p.ended); _ = command.Wait() }()
	return p, nil
}

// alive returns an error with the end of the output if the process has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		text, _ := os.ReadFile(p.output)
		return fmt.Errorf("%s ended: %s", p.command.Path, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

// stop ends the process.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// ticksPerSecond is the unit of CPU times in /proc: USER_HZ is 100 on every
// architecture that Linux runs Go on.
const ticksPerSecond = 100

// cpu returns the CPU time used so far, in seconds.
func (p *process) cpu() (float64, error) { return cpuOf(p.command.Process.Pid) }

// cpuOf returns the CPU time that a process has used, in seconds.
func cpuOf(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	// The name in parentheses may hold anything; fields count from after it.
	_, rest, found := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(rest))
	if !found || len(fields) < 13 {
		return 0, errors.New("reading CPU time: /proc's stat is not as expected")
	}
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond, errors.Join(err1, err2)
}

// memory returns the resident memory, in MB of a million bytes.
func (p *process) memory() (float64, error) { return megabytes(p.command.Process.Pid, "VmRSS:") }

// peakMemory returns the most that the resident memory has been.
func (p *process) peakMemory() (float64, error) { return megabytes(p.command.Process.Pid, "VmHWM:") }

// megabytes returns a size from /proc's status of a process.
func megabytes(pid int, name string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading memory: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, name); found {
			kb, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("reading memory: no %s in /proc's status", strings.TrimSuffix(name, ":"))
}

// mostRest is how long a process may take to come to rest.
const mostRest = 5 * time.Minute

// A process that has used less than lowUse seconds of CPU in each of lowSeconds seconds is at rest too: that is what it uses then.
// kube-controller-manager compares all volumes ten times a second.
const (
	lowUse     = 0.15
	lowSeconds = 30
)

// idle waits until the process has used next to no CPU for a while, so that
// memory is read at rest and start-up is not counted as work.
func (p *process) idle(ctx context.Context) error { return p.below(ctx, 0.03) }

// calm waits until the process has done what it starts with. Of a large cluster there is always something to look through again.
func (p *process) calm(ctx context.Context) error { return p.below(ctx, 0.2) }

// below waits until the process has used no more than so many seconds of CPU in each of several seconds. What a process still
// uses after mostRest is what it uses at rest.
func (p *process) below(ctx context.Context, quiet float64) error {
	const window = 3 // seconds
	calm, low := 0, 0
	before, err := p.cpu()
	for began := time.Now(); err == nil && calm < window && low < lowSeconds && time.Since(began) < mostRest; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not come to rest: %w", p.command.Path, ctx.Err())
		case <-time.After(time.Second):
		}
		var now float64
		if err = p.alive(); err != nil {
			return err
		}
		if now, err = p.cpu(); err != nil {
			return err
		}
		calm, low = inARow(calm, now-before <= quiet), inARow(low, now-before <= lowUse)
		before = now
	}
	return err
}

// inARow counts how often in a row something was so.
func inARow(before int, is bool) int {
	if is {
		return before + 1
	}
	return 0
}
