// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
)

// maxLines bounds the log of one instance of a container, and maxLine a line of it
// in bytes. Beyond maxLines the oldest lines are dropped.
const (
	maxLines = 100
	maxLine  = 1 << 10
)

// logLine is one line of the log of a simulated container. Its time is that of the
// Pod's status, in whole seconds.
type logLine struct {
	at   time.Time
	text string
}

// instance is one run of a container: a restart begins the next one.
type instance struct {
	number  int32 // the restart count during the run
	image   string
	lines   []logLine
	dropped int // how many lines went before those
	ready   bool
	ended   bool
}

// record is the log of one container. It has what a kubelet keeps: the newest
// instance and the one before.
type record struct {
	name              string
	current, previous *instance
}

// records are the logs of the containers of one Pod. They are made of the changes
// of the Pod's status, wherever these come from, and are guarded by the store.
type records []record

// observe adds what the status of a Pod says and the records do not have yet.
func (r *records) observe(pod *corev1.Pod) {
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			r.container(statuses[i].Name).observe(pod, &statuses[i])
		}
	}
}

// container returns the record of a container, which is made if it does not exist.
func (r *records) container(name string) *record {
	for i := range *r {
		if (*r)[i].name == name {
			return &(*r)[i]
		}
	}
	*r = append(*r, record{name: name})
	return &(*r)[len(*r)-1]
}

// find returns an instance of a container, nil if it is not there.
func (r records) find(name string, number int32) *instance {
	for i := range r {
		for _, in := range []*instance{r[i].current, r[i].previous} {
			if r[i].name == name && in != nil && in.number == number {
				return in
			}
		}
	}
	return nil
}

func (r *record) observe(pod *corev1.Pod, s *corev1.ContainerStatus) {
	if last := s.LastTerminationState.Terminated; last != nil && last.ContainerID != "" {
		r.instance(pod, s, lastInstance(s), last.StartedAt.Time).end(pod, s, last)
	}
	switch running, ended := s.State.Running, s.State.Terminated; {
	case running != nil:
		r.instance(pod, s, s.RestartCount, running.StartedAt.Time).probe(pod, s)
	case ended != nil && ended.ContainerID != "":
		r.instance(pod, s, s.RestartCount, ended.StartedAt.Time).end(pod, s, ended)
	}
}

// lastInstance is the number of the instance in LastTerminationState: the one
// before, unless the container still waits to be restarted.
func lastInstance(s *corev1.ContainerStatus) int32 {
	if s.State.Running == nil && s.State.Terminated == nil {
		return s.RestartCount
	}
	return s.RestartCount - 1
}

// instance returns the instance with this number, which starts when it is first read.
func (r *record) instance(pod *corev1.Pod, s *corev1.ContainerStatus, number int32, started time.Time) *instance {
	switch {
	case r.current != nil && r.current.number == number:
		return r.current
	case r.previous != nil && r.previous.number == number:
		return r.previous
	}
	in := &instance{number: number}
	r.previous, r.current = r.current, in
	in.add(started, fmt.Sprintf("created container %s of pod %s/%s on simulated node %s", s.Name, pod.Namespace, pod.Name, pod.Spec.NodeName))
	if number > 0 {
		in.add(started, fmt.Sprintf("restart %d", number))
	}
	if number != s.RestartCount {
		in.add(started, "started") // with which image, the status does not keep
		return in
	}
	in.image = s.Image
	in.add(started, "started with image "+s.Image)
	if _, init := containerOf(pod, s.Name); init {
		return in
	}
	if why := because(pod, ReadyAfter); why != "" {
		in.add(started, "not ready yet"+why)
	}
	return in
}

func (in *instance) add(at time.Time, text string) {
	if len(in.lines) == maxLines {
		in.lines = slices.Delete(in.lines, 0, 1)
		in.dropped++
	}
	in.lines = append(in.lines, logLine{at: at.UTC().Truncate(time.Second), text: oneLine(text)})
}

// oneLine makes a line of a text with parts that users chose, such as the name of
// an image: one that a terminal can show, and at most maxLine bytes long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	return text
}

// probe notes that a running container has become ready, or is no longer.
func (in *instance) probe(pod *corev1.Pod, s *corev1.ContainerStatus) {
	if in.ready == s.Ready {
		return
	}
	in.ready = s.Ready
	at := in.lines[len(in.lines)-1].at
	if c := conditionOf(&pod.Status, corev1.ContainersReady); c != nil && c.LastTransitionTime.After(at) {
		at = c.LastTransitionTime.Time
	}
	switch {
	case s.Ready:
		in.add(at, "ready")
	case pod.DeletionTimestamp != nil:
		in.add(at, "not ready: the pod is being deleted")
	default:
		in.add(at, "not ready"+because(pod, ReadyAfter, UnreadyAfter, FlipEvery))
	}
}

// end notes how a container has ended, and why.
func (in *instance) end(pod *corev1.Pod, s *corev1.ContainerStatus, end *corev1.ContainerStateTerminated) {
	if in.ended {
		return
	}
	in.ended, in.ready = true, false
	var why string
	switch {
	case in.number != s.RestartCount && in.image != "" && in.image != s.Image:
		why = ": the image was replaced by " + s.Image
	case pod.DeletionTimestamp != nil:
		why = ": the pod is being deleted"
	case pod.Status.Reason != "":
		why = ": " + pod.Status.Reason
	default:
		why = because(pod, exitAnnotations(pod, s.Name)...)
		if why == "" && ownedByJob(pod) {
			why = fmt.Sprintf(": containers of a Job end after %s unless the annotation %s says otherwise", JobRuntime, ExitAfter)
		}
	}
	in.add(end.FinishedAt.Time, fmt.Sprintf("exited with code %d%s", end.ExitCode, why))
}

// exitAnnotations returns the annotations that state how a container ends.
func exitAnnotations(pod *corev1.Pod, container string) []string {
	all := []string{ExitAfter, ExitCode, FailFirst}
	own := []string{ExitAfter + "." + container, ExitCode + "." + container, FailFirst + "." + container}
	_, init := containerOf(pod, container)
	stated := func(name string) bool { _, ok := pod.Annotations[name]; return ok }
	if init || slices.ContainsFunc(own, stated) {
		return own
	}
	return all
}

// because names those of the annotations that the Pod has and that are understood.
func because(pod *corev1.Pod, annotations ...string) string {
	var said []string
	for _, name := range annotations {
		value, ok := pod.Annotations[name]
		if ok && new(behavior).read(pod, name, value) == nil {
			said = append(said, name+"="+value)
		}
	}
	switch len(said) {
	case 0:
		return ""
	case 1:
		return ": annotation " + said[0]
	}
	return ": annotations " + strings.Join(said, ", ")
}
