// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
)

// ofPod returns the signs of a Pod. Of one that is being deleted only its disruption counts: its
// containers end because they are reported to.
func ofPod(o jsontree.Tree) []Sign {
	signs := []Sign{disruption(o), failure(o)}
	if o.Text("metadata", "deletionTimestamp") != "" {
		return signs
	}
	signs = append(signs, scheduling(o))
	for _, list := range containerLists {
		for _, status := range o.List("status", list.status) {
			signs = append(signs, ofContainer(o, list, status)...)
		}
	}
	conditions := conditionSigns(o, ofPodConditions)
	if ready := &conditions[len(conditions)-1]; o.Text("spec", "nodeName") == "" || isDone(o) {
		ready.health = unclear
	}
	return append(signs, conditions...)
}

// isDone reports whether no container of a Pod is started any more.
func isDone(o jsontree.Tree) bool {
	phase := o.Text("status", "phase")
	return phase == "Succeeded" || phase == "Failed"
}

// disruption is an eviction or a preemption. The Pod is deleted next, or fails.
func disruption(o jsontree.Tree) Sign {
	c := o.Named("type", "DisruptionTarget", "status", "conditions")
	s := Sign{Name: "disruption", Reason: c.Text("reason"), Message: c.Text("message"), sort: ofObject, health: unclear, grade: 1}
	if c.Text("status") == "True" {
		s.health = bad
	}
	return s
}

// failure is a Pod that failed as a whole, with a reason such as Evicted or NodeAffinity. The reason
// of one that was disrupted as well says the same.
func failure(o jsontree.Tree) Sign {
	s := Sign{Name: "failure", Reason: o.Text("status", "reason"), Message: o.Text("status", "message"), sort: ofObject, health: unclear, grade: 1}
	disrupted := o.Named("type", "DisruptionTarget", "status", "conditions").Text("status") == "True"
	if o.Text("status", "phase") == "Failed" && s.Reason != "" && !disrupted {
		s.health = bad
	}
	return s
}

// scheduling is a Pod for which the scheduler finds no Node. One that waits for its scheduling gates
// is as its owner wants it.
func scheduling(o jsontree.Tree) Sign {
	c := o.Named("type", "PodScheduled", "status", "conditions")
	s := Sign{Name: "scheduling", Reason: c.Text("reason"), Message: c.Text("message"), sort: ofScheduling, grade: 1, patience: soon, node: o.Text("spec", "nodeName")}
	switch {
	case s.node != "" || c.Text("status") == "True":
		s.health = good
	case c.Text("status") == "False" && s.Reason != "SchedulingGated":
		s.health = bad
	}
	return s
}

// containerList is one of the lists of containers of a Pod.
type containerList struct{ spec, status, about string }

var containerLists = []containerList{
	{"initContainers", "initContainerStatuses", "init container"},
	{"containers", "containerStatuses", "container"},
	{"ephemeralContainers", "ephemeralContainerStatuses", "ephemeral container"},
}

// Reasons for which containers wait, beside those of crashes.
// Sources: k8s.io/kubernetes/pkg/kubelet/images and pkg/kubelet/kuberuntime.
var (
	normalReasons = []string{"", "ContainerCreating", "PodInitializing"}
	imageReasons  = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError", "InvalidImageName", "RegistryUnavailable", "SignatureValidationFailed"}
	configReasons = []string{"CreateContainerConfigError", "CreateContainerError", "PreCreateHookError", "CreatePodSandboxError", "ConfigPodSandboxError"}
)

// crashLoop is the reason of a container that ends again and again. Its message says how long the
// kubelet waits, and not why the container ends.
const crashLoop = "CrashLoopBackOff"

// plainError is the reason of a container that ended with another exit code than 0.
const plainError = "Error"

const (
	// shortRun and longRun bound how long a container must run before a crash is over: twice as
	// long as it ran before it. After ten minutes the kubelet begins to count anew.
	// Source: k8s.io/kubernetes/pkg/kubelet, MaxCrashLoopBackOff; the back-off is reset after twice that.
	shortRun = 30 * time.Second
	longRun  = 10 * time.Minute

	ended   = 1 // grade of a container that ended
	looping = 2 // grade of one that ends again and again
)

// ofContainer returns the signs of a container: its image, its creation, and its end.
func ofContainer(pod jsontree.Tree, list containerList, status jsontree.Tree) []Sign {
	name := status.Text("name")
	about := list.about + " " + name
	state, last := status.At("state"), status.At("lastState", "terminated")
	base := Sign{About: about, grade: ended, Restarts: status.Number(0, "restartCount")}

	image, config, crash := base, base, base
	image.Name, image.sort, image.quiet = "image of "+about, ofImage, calm
	config.Name, config.sort, config.quiet = "start of "+about, ofConfig, calm
	crash.Name, crash.sort = "end of "+about, ofCrash

	waiting := state.Text("waiting", "reason")
	switch {
	case state.At("waiting").Value != nil && slices.Contains(normalReasons, waiting):
	case slices.Contains(imageReasons, waiting):
		image.health, image.Reason, image.Message = bad, waiting, state.Text("waiting", "message")
		if image.Message == "" {
			image.Message = status.Text("image")
		}
	case slices.Contains(configReasons, waiting):
		image.health = good
		config.health, config.Reason, config.Message = bad, waiting, state.Text("waiting", "message")
	case state.At("waiting").Value != nil: // CrashLoopBackOff, or an error of the start that alternates with it
		image.health, config.health = good, good
		crash.ended(last)
		switch {
		case waiting != crashLoop:
			crash.Message = state.Text("waiting", "message")
		case crash.Reason != plainError: // OOMKilled says more than the exit code
			crash.Message = strings.TrimSuffix(crash.Reason+": "+crash.Message, ": ")
		}
		crash.health, crash.Reason, crash.grade = bad, waiting, looping
	case state.At("terminated").Value != nil:
		image.health, config.health = good, good
		crash.ended(state.At("terminated"))
		crash.health = bad
		if crash.ExitCode == 0 && !restarts(pod, list, name) {
			crash.health = good
		}
	case state.At("running").Value != nil:
		image.health, config.health, crash.health = good, good, good
		crash.ended(last)
		crash.quiet = min(max(2*lasted(last), shortRun), longRun)
	}
	return []Sign{image, config, crash}
}

// IsFailing reports whether the state of a container says that it cannot run: it waits for another
// reason than its start, or has ended with another exit code than 0.
func IsFailing(state map[string]any) bool {
	s := jsontree.Tree{Value: state}
	if s.At("waiting").Value != nil {
		return !slices.Contains(normalReasons, s.Text("waiting", "reason"))
	}
	return s.Number(0, "terminated", "exitCode") != 0
}

// ended notes how a container ended.
func (s *Sign) ended(terminated jsontree.Tree) {
	s.Reason, s.ExitCode = terminated.Text("reason"), terminated.Number(0, "exitCode")
	s.Message = strings.TrimSpace(terminated.Text("message"))
	if s.Reason == "" {
		s.Reason = plainError
	}
}

// lasted returns how long a container ran.
func lasted(terminated jsontree.Tree) time.Duration {
	from, err := time.Parse(time.RFC3339, terminated.Text("startedAt"))
	if err != nil {
		return 0
	}
	to, err := time.Parse(time.RFC3339, terminated.Text("finishedAt"))
	if err != nil {
		return 0
	}
	return to.Sub(from)
}

// restarts reports whether a container is started again although it ended well: such a container
// is meant to run for ever.
func restarts(pod jsontree.Tree, list containerList, name string) bool {
	if isDone(pod) || list.about == "ephemeral container" {
		return false
	}
	switch own := pod.Named("name", name, "spec", list.spec).Text("restartPolicy"); {
	case own != "":
		return own == "Always"
	case list.about == "init container":
		return false
	}
	policy := pod.Text("spec", "restartPolicy")
	return policy == "" || policy == "Always"
}
