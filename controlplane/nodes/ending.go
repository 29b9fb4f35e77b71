// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// exits is what annotations state about how a container ends: those without the name of a
// container for all but the init containers, those with one for that container.
type exits struct {
	after     span
	code      int32
	codeSaid  bool
	failFirst int32
}

// isExit splits the name of an annotation that belongs to exits into that of the
// annotation and that of the container, which is "" for all.
func isExit(name string) (annotation, container string, ok bool) {
	for _, annotation := range []string{ExitAfter, ExitCode, FailFirst} {
		if name == annotation {
			return annotation, "", true
		}
		if container, ok := strings.CutPrefix(name, annotation+"."); ok {
			return annotation, container, true
		}
	}
	return "", "", false
}

// readExit takes over one annotation of exits, if it is understood.
func (b *behavior) readExit(pod *corev1.Pod, annotation, container, value string) error {
	if container == "" {
		return b.exits.read(annotation, value)
	}
	if c, _ := containerOf(pod, container); c == nil {
		return fmt.Errorf("the Pod has no container %q", container)
	}
	e := b.exitsOf[container]
	if err := e.read(annotation, value); err != nil {
		return err
	}
	if b.exitsOf == nil {
		b.exitsOf = map[string]exits{}
	}
	b.exitsOf[container] = e
	return nil
}

func (e *exits) read(annotation, value string) (err error) {
	switch annotation {
	case ExitAfter:
		e.after, err = parseSpan(value, true)
	case ExitCode:
		e.code, err = parseExitCode(value)
		e.codeSaid = err == nil
	case FailFirst:
		e.failFirst, err = parseFailFirst(value)
	}
	return err
}

func parseFailFirst(value string) (int32, error) {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of runs, such as 3", value)
	}
	return int32(n), nil
}

// containerOf returns a container or an init container of a Pod.
func containerOf(pod *corev1.Pod, name string) (c *corev1.Container, init bool) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i], false
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i], true
		}
	}
	return nil, false
}

// ending is how the runs of one container end.
type ending struct {
	after span
	code  int32

	// The first runs end otherwise.
	failFirst int32
	failAfter span
	failCode  int32
}

// endingOf returns how a container ends: as its own annotations state, as those for all
// containers do, or as usual.
func (p *pass) endingOf(c *corev1.Container) ending {
	e, own := p.does.exitsOf[c.Name]
	_, init := containerOf(p.pod, c.Name)
	if !own && !init {
		e = p.does.exits
	}

	usual := span{never: true}
	switch {
	case init && !sidecar(c):
		usual = span{}
	case !init && ownedByJob(p.pod):
		usual = span{least: JobRuntime}
	}
	stated := usual
	switch {
	case e.after.said:
		stated = e.after
	case e.codeSaid:
		stated = span{least: failingRuntime}
	}
	if e.failFirst == 0 {
		return ending{after: stated, code: e.code}
	}

	out := ending{after: stated, failFirst: e.failFirst, failAfter: stated, failCode: e.code}
	if stated.never {
		out.failAfter = span{least: failingRuntime}
	}
	if out.failCode == 0 {
		out.failCode = 1
	}
	switch runsOn := p.restart(c, 0) && (!init || sidecar(c)); {
	case runsOn:
		out.after = span{never: true}
	case stated.never && !e.after.said:
		out.after = span{least: failingRuntime}
	}
	return out
}

// over reports whether the current run of a container ends now, and with which code.
func (p *pass) over(c *corev1.Container, s *corev1.ContainerStatus) (code int32, is bool) {
	e := p.endingOf(c)
	began := p.memo.exact("run/"+c.Name, s.State.Running.StartedAt)
	due := func(after span) bool {
		return !p.due(began.Add(after.of(p.pod.UID, "exit/"+c.Name, s.RestartCount)))
	}
	if e.failFirst > 0 && due(e.failAfter) && p.does.fails(c.Name, s.RestartCount, e.failFirst) {
		return e.failCode, true
	}
	if !e.after.never && due(e.after) {
		return e.code, true
	}
	return 0, false
}

// fails reports whether the run of a container, counted from 0, is one of the first that
// fail.
func (b behavior) fails(container string, run, first int32) bool {
	if b.failing == nil {
		return run < first
	}
	return b.failing(container, run, first)
}
