// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// watchPlay is one round of one turn.
type watchPlay struct {
	*watchBench
	scene *scene
	round watchRound
	ready *corev1.Pod // see makeReadyPod
	out   io.Writer
	turn  int

	replayed *replayed // nil: there is a control plane

	watchers []*watcher
	before   map[string]float64 // CPU seconds at the beginning of the changes
	found    map[string]readings
}

// play starts the sides, changes Pods and notes what that cost each.
func (p *watchPlay) play(ctx context.Context, l *changer) error {
	p.before, p.found = map[string]float64{}, map[string]readings{}
	defer func() {
		for _, w := range p.watchers {
			w.end()
		}
	}()
	for _, side := range p.round.sides {
		if err := p.start(ctx, side); err != nil {
			return err
		}
	}
	stopProfiling := p.profile(ctx)
	if err := p.change(ctx, l); err != nil {
		return err
	}
	if err := stopProfiling(); err != nil {
		return err
	}
	for _, w := range p.watchers {
		if err := p.finish(ctx, w, l.ledger); err != nil {
			return err
		}
		key := p.round.name + " " + w.name
		p.results[key] = append(p.results[key], p.found[w.name])
	}
	return nil
}

// start starts a side and waits until it has read everything and is at rest. The one that
// is started next does not take CPU from it.
func (p *watchPlay) start(ctx context.Context, side string) error {
	dir, err := os.MkdirTemp(p.scene.dir, side)
	if err != nil {
		return err
	}
	began := time.Now()
	var w *watcher
	if side == setpointSide {
		args := []string{"pods", "--kubeconfig", p.scene.kubeconfig, "-o", "json"}
		if p.round.name == cursorRound {
			args = append(args, "--cursor", filepath.Join(dir, "cursor"))
		}
		w, err = startWatcher(dir, side, filepath.Join(p.bin, "setpoint-watch"), parseSetpoint, args...)
	} else {
		w, err = startWatcher(dir, side, p.kubewatchBinary, parseKubewatch, "--kubeconfig", p.scene.kubeconfig, "--annotation", stampAnnotation)
	}
	if err != nil {
		return err
	}
	p.watchers = append(p.watchers, w)
	if err := p.awaitReady(ctx, w); err != nil {
		return err
	}
	wall := time.Since(began).Seconds()
	if err := w.idle(ctx); err != nil {
		return err
	}
	synced, err1 := w.memory()
	cpu, err2 := w.cpu()
	p.found[side] = readings{"wall": wall, "synced": synced, "sync": cpu}
	return errors.Join(err1, err2)
}

// readyEvery is how often the Pod is changed that shows that a side is ready.
const readyEvery = 250 * time.Millisecond

// awaitReady changes a Pod until the watcher tells of it. Whether a process is ready can be
// seen from outside in no other way that is the same for both.
func (p *watchPlay) awaitReady(ctx context.Context, w *watcher) error {
	for i := 0; ; i++ {
		if err := p.stampReady(ctx, i); err != nil {
			return err
		}
		select {
		case <-w.ready:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s tells of no change: %w", w.name, ctx.Err())
		case <-time.After(readyEvery):
		}
		if err := w.well(); err != nil {
			return err
		}
	}
}

func (p *watchPlay) stampReady(ctx context.Context, i int) error {
	stamp := readyStamp + strconv.Itoa(i)
	if p.replayed != nil {
		return p.replayed.change(0, i, stamp)
	}
	return stampPod(ctx, p.scene.plain, p.ready, stamp)
}

// patience is how long nothing may be told until what is missing counts as lost.
const patience = 15 * time.Second

// change changes Pods, and waits until every side has printed all changes, or prints no more.
func (p *watchPlay) change(ctx context.Context, l *changer) error {
	for _, w := range p.watchers {
		cpu, err := w.cpu()
		if err != nil {
			return err
		}
		p.before[w.name] = cpu
		w.ledger.Store(l.ledger)
	}
	server := p.scene.process.Pid()
	before, err1 := cpuOf(server)
	own, err2 := processCPU()
	began := time.Now()
	if err := errors.Join(err1, err2, l.run(ctx)); err != nil {
		return err
	}
	ended := time.Now()
	after, err1 := cpuOf(server)
	ownAfter, err2 := processCPU()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	accepted, failed := l.ledger.accepted()
	took := ended.Sub(began).Seconds()
	fmt.Fprintf(p.out, "# %s: %d changes in %.1f s, %.0f/s; answered after p50 %.1f ms, p99 %.1f ms; %d failed; load average %s\n",
		p.round.name, accepted, took, float64(accepted)/took, quantile(l.answers, 0.5), quantile(l.answers, 0.99), failed, loadAverage())
	fmt.Fprintf(p.out, "# %s: meanwhile the control plane took %.2f and this process %.2f of a processor\n",
		p.round.name, (after-before)/took, (ownAfter-own)/took)
	if l.failure != nil {
		fmt.Fprintf(p.out, "# %s: the first that failed: %v\n", p.round.name, l.failure)
	}
	if accepted == 0 {
		return fmt.Errorf("no change was accepted: %w", l.failure)
	}
	for _, w := range p.watchers {
		err := poll(ctx, w.name+" to tell of all changes", func() (bool, error) {
			lost, moved := l.ledger.lost(w.name)
			if moved.Before(ended) {
				moved = ended
			}
			return len(lost) == 0 || time.Since(moved) > patience, w.well()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// finish reads what a side has cost.
func (p *watchPlay) finish(ctx context.Context, w *watcher, l *ledger) error {
	if err := errors.Join(w.idle(ctx), w.well()); err != nil {
		return err
	}
	r := p.found[w.name]
	cpu, err1 := w.cpu()
	after, err2 := w.memory()
	peak, err3 := w.peakMemory()
	heap, err4 := w.heap(ctx) // last, because it collects garbage
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	accepted, _ := l.accepted()
	lost, _ := l.lost(w.name)
	lags, behind := l.lags(w.name), l.behind(w.name)
	r["cpu"] = (cpu - p.before[w.name]) / float64(accepted) * 1000
	r["after"], r["peak"], r["heap"] = after, peak, heap
	r["p50"], r["p99"], r["lost"] = quantile(lags, 0.5), quantile(lags, 0.99), float64(total(lost))
	r["behind50"], r["behind99"] = quantile(behind, 0.5), quantile(behind, 0.99)
	fmt.Fprintf(p.out, "# %s, %s: %s; %d lines, %d bytes each; lag at most %.0f ms\n", p.round.name, w.name, l.report(w.name),
		w.lines.Load(), w.bytes.Load()/max(1, w.lines.Load()), quantile(lags, 1))
	return p.saveHeap(ctx, w)
}

// profile begins a profile of Setpoint's CPU, in rounds in which it is alone, and of the
// control plane in the round with both. It returns what waits until that is written.
func (p *watchPlay) profile(ctx context.Context) func() error {
	if p.profiles == "" {
		return func() error { return nil }
	}
	var of func() ([]byte, error)
	name := "cpu"
	switch {
	case p.round.name == bothRound:
		name = "server-cpu"
		of = func() ([]byte, error) {
			return p.scene.plain.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").
				Param("seconds", strconv.Itoa(min(p.seconds, 30))).Do(ctx).Raw()
		}
	case p.watchers[0].name == setpointSide:
		of = func() ([]byte, error) {
			return p.watchers[0].ask(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", p.seconds))
		}
	default:
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- p.save(of, name) }()
	return func() error { return <-done }
}

func (p *watchPlay) saveHeap(ctx context.Context, w *watcher) error {
	if p.profiles == "" || w.name != setpointSide {
		return nil
	}
	return p.save(func() ([]byte, error) { return w.ask(ctx, "/debug/pprof/heap") }, "heap")
}

// save writes a profile to a file.
func (p *watchPlay) save(of func() ([]byte, error), what string) error {
	content, err := of()
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	return os.WriteFile(filepath.Join(p.profiles, fmt.Sprintf("watch-%s-%s-%d.pprof", p.round.name, what, p.turn+1)), content, 0o600)
}
