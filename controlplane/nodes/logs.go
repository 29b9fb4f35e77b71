// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// refusal is an answer of a simulated kubelet that is an error.
type refusal struct {
	code    int
	message string
}

func (r *refusal) Error() string { return r.message }

// refused is the answer to a request that cannot be met. Its code is the one whose
// text the API server passes on to the user.
func refused(format string, args ...any) error {
	return &refusal{code: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// logID names the log of one instance of a container.
type logID struct {
	pod       types.NamespacedName
	uid       types.UID
	container string
	number    int32
}

// view is what a log holds at one moment. It does not change.
type view struct {
	lines   []logLine
	dropped int             // how many lines went before those
	ended   bool            // no line follows
	changed <-chan struct{} // closed when there may be more
}

// answering returns a Pod, or why its Node does not answer for it. The caller holds
// the lock.
func (s *store) answering(name types.NamespacedName) (*podState, error) {
	state, ok := s.pods[name]
	if !ok {
		return nil, refused("pod %q does not exist on a simulated node", name)
	}
	node := state.object.Spec.NodeName
	on, ok := s.nodes[node]
	if !ok {
		return nil, refused("node %q of pod %q is not simulated", node, name)
	}
	if quiet, _ := silent(on.object); quiet {
		return nil, refused("simulated node %s does not answer: annotation %s=%s", node, NodeSwitch, Silent)
	}
	return state, nil
}

// nodeOf returns the simulated Node of a Pod.
func (s *store) nodeOf(name types.NamespacedName) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, err := s.answering(name)
	if err != nil {
		return "", err
	}
	return state.object.Spec.NodeName, nil
}

// findLog returns which log a request is about.
func (s *store) findLog(q logRequest) (logID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, err := s.answering(q.pod)
	if err != nil {
		return logID{}, err
	}
	number, err := loggedInstance(state.object, q.container, q.previous)
	if err != nil {
		return logID{}, err
	}
	return logID{q.pod, state.object.UID, q.container, number}, nil
}

// readLog returns what a log holds now. A log that is gone has ended.
func (s *store) readLog(id logID) view {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, err := s.answering(id.pod)
	if err != nil || state.object.UID != id.uid {
		return view{ended: true}
	}
	in := state.logs.find(id.container, id.number)
	if in == nil {
		return view{ended: true}
	}
	if state.changed == nil {
		state.changed = make(chan struct{})
	}
	return view{lines: slices.Clone(in.lines), dropped: in.dropped, ended: in.ended, changed: state.changed}
}

// loggedInstance returns the instance of a container whose log a kubelet shows, by
// its rule (validateContainerLogStatus in pkg/kubelet of Kubernetes 1.37): the
// running one, else the last that has ended.
func loggedInstance(pod *corev1.Pod, container string, previous bool) (int32, error) {
	s := containerStatus(pod, container)
	if s == nil {
		return 0, refused("container %q in pod %q is not available", container, pod.Name)
	}
	last := s.LastTerminationState.Terminated
	hasLast := last != nil && last.ContainerID != ""
	ended := s.State.Terminated
	switch {
	case previous && !hasLast:
		return 0, refused("previous terminated container %q in pod %q not found", container, pod.Name)
	case previous:
		return lastInstance(s), nil
	case s.State.Running != nil, ended != nil && ended.ContainerID != "":
		return s.RestartCount, nil
	case hasLast:
		return lastInstance(s), nil
	case ended != nil || last != nil:
		return 0, refused("container %q in pod %q is terminated", container, pod.Name)
	case s.State.Waiting == nil:
		return 0, refused("container %q in pod %q is waiting to start - no logs yet", container, pod.Name)
	}
	reason := s.State.Waiting.Reason
	switch reason {
	case "ErrImagePull":
		reason = "image can't be pulled"
	case "ImagePullBackOff":
		reason = "trying and failing to pull image"
	}
	return 0, refused("container %q in pod %q is waiting to start: %s", container, pod.Name, reason)
}

func containerStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		if s := statusOf(statuses, name); s != nil {
			return s
		}
	}
	return nil
}
