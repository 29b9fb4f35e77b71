// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controlplane/metrics"
)

// Prefix is what all annotations and labels of the simulation begin with.
const Prefix = "sim.setpoint.io/"

// Annotations of a Pod that say how it behaves. Durations are written as Go writes them
// ("1m30s"), or as "5s+3s": five seconds, and up to three more, always the same for a
// Pod.
const (
	StartAfter   = Prefix + "start-after"   // from binding until its containers run; default 0s
	ReadyAfter   = Prefix + "ready-after"   // from running until ready, or "never"; default 0s
	UnreadyAfter = Prefix + "unready-after" // from ready until ready no more; default never
	FlipEvery    = Prefix + "flip-every"    // from one change between ready and not ready to the next; default never
	ImagePull    = Prefix + "image-pull"    // "error": its images cannot be pulled; "ok": they can, whatever their names; a number: so many attempts fail
	Reject       = Prefix + "reject"        // the reason with which its kubelet refuses it; default none

	// These are for all containers but the init containers. With a dot and the name
	// of a container after them, they are for that one, which may be an init container.
	ExitAfter = Prefix + "exit-after" // from running until its containers end, or "never"; default never, for a Job's Pod JobRuntime
	ExitCode  = Prefix + "exit-code"  // of those containers, 0 to 255; default 0
	FailFirst = Prefix + "fail-first" // how many runs fail before one does not; default 0
)

// JobRuntime is how long the containers of a Pod that a Job controls run, where
// no annotation says otherwise: long enough to be seen, short enough to wait for.
const JobRuntime = time.Second

// failingRuntime is how long containers with an exit code and without a time run.
const failingRuntime = time.Second

// span is a duration with a random part, or never. The zero span is "not said".
type span struct {
	said   bool
	never  bool
	least  time.Duration
	jitter time.Duration
}

// behavior is what the annotations of a Pod, and what kind of Pod it is, say.
type behavior struct {
	start, ready, unready, flip span

	exits     exits            // of all containers but the init containers
	exitsOf   map[string]exits // of single containers
	imagePull imagePull
	reject    string // a reason, or ""

	// unprepared says which claim or volume of the Pod is not ready for it, and why; "" is none.
	// Containers that have not started wait for it.
	unprepared string

	// failing decides about FailFirst, as behavior.fails has it, with what is known
	// of other Pods; nil counts the runs of this Pod alone.
	failing func(container string, run, first int32) bool
}

// behaviorOf reads the annotations of a Pod. What cannot be understood counts as
// not said, and problems has a sentence for each.
func behaviorOf(pod *corev1.Pod) (b behavior, problems []string) {
	for name, value := range pod.Annotations {
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		if err := b.read(pod, name, value); err != nil {
			problems = append(problems, fmt.Sprintf("annotation %s is ignored: %v", name, err))
		}
	}
	slices.Sort(problems)

	if !b.unready.said {
		b.unready.never = true
	}
	return b, problems
}

// read takes over one annotation of the simulation, if it is understood.
func (b *behavior) read(pod *corev1.Pod, name, value string) (err error) {
	if metrics.IsAnnotation(name) {
		return metrics.CheckAnnotation(pod, name, value)
	}
	if annotation, container, ok := isExit(name); ok {
		return b.readExit(pod, annotation, container, value)
	}
	switch name {
	case StartAfter:
		b.start, err = parseSpan(value, false)
	case ReadyAfter:
		b.ready, err = parseSpan(value, true)
	case UnreadyAfter:
		b.unready, err = parseSpan(value, true)
	case FlipEvery:
		b.flip, err = parseFlip(value)
	case ImagePull:
		b.imagePull, err = parseImagePull(value)
	case Reject:
		b.reject, err = parseReject(value)
	default:
		return fmt.Errorf("no such annotation; a Pod knows %s", strings.Join(podAnnotations, ", "))
	}
	return err
}

var podAnnotations = []string{
	StartAfter, ReadyAfter, UnreadyAfter, FlipEvery, ExitAfter, ExitCode, FailFirst, ImagePull, Reject,
	metrics.UsageCPU, metrics.UsageMemory, metrics.MetricPrefix + "NAME",
}

func parseSpan(value string, mayBeNever bool) (span, error) {
	if value == "never" && mayBeNever {
		return span{said: true, never: true}, nil
	}
	least, jitter, hasJitter := strings.Cut(value, "+")
	s := span{said: true}
	var err error
	if s.least, err = time.ParseDuration(least); err != nil {
		return span{}, notASpan(value, mayBeNever)
	}
	if hasJitter {
		if s.jitter, err = time.ParseDuration(jitter); err != nil {
			return span{}, notASpan(value, mayBeNever)
		}
	}
	if s.least < 0 || s.jitter < 0 || s.least+s.jitter < 0 {
		return span{}, fmt.Errorf("%q is negative or too long", value)
	}
	return s, nil
}

func notASpan(value string, mayBeNever bool) error {
	if mayBeNever {
		return fmt.Errorf(`%q is not a duration such as "5s", "5s+3s" or "never"`, value)
	}
	return fmt.Errorf(`%q is not a duration such as "5s" or "5s+3s"`, value)
}

func parseExitCode(value string) (int32, error) {
	code, err := strconv.ParseUint(value, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%q is not an exit code from 0 to 255", value)
	}
	return int32(code), nil
}

// of returns the duration that the span stands for in one situation of one Pod. The
// random part is a hash, so that the simulation stays a function of the Pod: it is the
// same at the next call, and in the next process.
func (s span) of(uid types.UID, purpose string, count int32) time.Duration {
	if s.jitter == 0 {
		return s.least
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", uid, purpose, count))
	fraction := float64(binary.BigEndian.Uint32(hash[:])) / (1 << 32)
	return s.least + time.Duration(fraction*float64(s.jitter))
}

func ownedByJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/")
}
