// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wantLog compares the log of the container web with lines such as "0s ready": the
// time since the begin of the life, in whole seconds, and the text.
func (l *life) wantLog(previous bool, want ...string) {
	l.t.Helper()
	number, err := loggedInstance(l.pod, "web", previous)
	if err != nil {
		l.t.Fatal(err)
	}
	in := l.logs.find("web", number)
	if in == nil {
		l.t.Fatalf("there is no log of instance %d", number)
	}
	var got []string
	for _, line := range in.lines {
		got = append(got, fmt.Sprintf("%s %s", line.at.Sub(l.begun.Truncate(time.Second)), line.text))
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("the log is:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLogTellsOfTheStartAndOfReadiness(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways, ReadyAfter, "10s"))
	created := fmt.Sprintf("0s created container web of pod %s/%s on simulated node %s", l.pod.Namespace, l.pod.Name, l.pod.Spec.NodeName)
	l.until(time.Minute)
	l.pod.Annotations[UnreadyAfter] = "0s"
	l.until(2 * time.Minute)
	delete(l.pod.Annotations, UnreadyAfter)
	l.until(3 * time.Minute)
	l.remove(30)
	l.until(4 * time.Minute)
	l.wantLog(false,
		created,
		"0s started with image nginx",
		"0s not ready yet: annotation sim.setpoint.io/ready-after=10s",
		"10s ready",
		"1m0s not ready: annotations sim.setpoint.io/ready-after=10s, sim.setpoint.io/unready-after=0s",
		"2m0s ready",
		"3m0s not ready: the pod is being deleted",
		"3m1s exited with code 143: the pod is being deleted",
	)
}

func TestLogOfARestartedContainerIsThatOfTheRunningInstanceAndOfTheOneBefore(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways, ExitAfter, "5s", ExitCode, "3"))
	created := fmt.Sprintf("created container web of pod %s/%s on simulated node %s", l.pod.Namespace, l.pod.Name, l.pod.Spec.NodeName)
	exited := "exited with code 3: annotations sim.setpoint.io/exit-after=5s, sim.setpoint.io/exit-code=3"
	l.until(6 * time.Second)
	l.wantLog(true, "0s "+created, "0s started with image nginx", "0s ready", "5s "+exited)
	l.wantLog(false, "5s "+created, "5s restart 1", "5s started with image nginx", "5s ready")

	// In a back-off there is no running instance: both are the last one.
	l.until(10500 * time.Millisecond)
	for _, previous := range []bool{false, true} {
		l.wantLog(previous, "5s "+created, "5s restart 1", "5s started with image nginx", "5s ready", "10s "+exited)
	}

	// A simulation that starts now finds the log in the Pod's status.
	l.logs = nil
	l.logs.observe(l.pod)
	l.wantLog(false, "5s "+created, "5s restart 1", "5s started with image nginx", "10s "+exited)
}

func TestLogNamesTheImageThatReplacedAnother(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways))
	l.until(5 * time.Second)
	l.pod.Spec.Containers[0].Image = "nginx:2\x1b[2J\n"
	l.until(6 * time.Second)
	created := fmt.Sprintf("created container web of pod %s/%s on simulated node %s", l.pod.Namespace, l.pod.Name, l.pod.Spec.NodeName)
	l.wantLog(true, "0s "+created, "0s started with image nginx", "0s ready", "5s exited with code 0: the image was replaced by nginx:2�[2J�")
	l.wantLog(false, "5s "+created, "5s restart 1", "5s started with image nginx:2�[2J�", "5s ready")
}

func TestLogSaysWhyOtherContainersEnd(t *testing.T) {
	for want, change := range map[string]func(*corev1.Pod){
		"exited with code 0: containers of a Job end after 1s unless the annotation sim.setpoint.io/exit-after says otherwise": func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Controller: new(true)}}
		},
		"exited with code 143: DeadlineExceeded": func(pod *corev1.Pod) {
			pod.Spec.ActiveDeadlineSeconds = new(int64(1))
		},
		// What is ignored is not a reason.
		"exited with code 1: annotation sim.setpoint.io/exit-code=1": func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{ExitCode: "1", ExitAfter: "soon"}
		},
	} {
		pod := newPod(corev1.RestartPolicyNever)
		change(pod)
		l := newLife(t, pod).until(time.Minute)
		lines := l.logs.find("web", 0).lines
		if got := lines[len(lines)-1].text; got != want {
			t.Errorf("the log ends with %q, want %q", got, want)
		}
	}
}

func TestLogIsBounded(t *testing.T) {
	pod := newPod(corev1.RestartPolicyAlways)
	pod.Spec.Containers[0].Image = strings.Repeat("ä", 100_000)
	l := newLife(t, pod).until(time.Second)
	for i := range 2 * maxLines {
		pod.Status.ContainerStatuses[0].Ready = i%2 != 0
		l.logs.observe(pod)
	}
	in := l.logs.find("web", 0)
	if len(in.lines) != maxLines || in.dropped != 2*maxLines+3-maxLines {
		t.Errorf("%d lines are kept and %d dropped, of %d", len(in.lines), in.dropped, 2*maxLines+3)
	}
	for i, line := range in.lines {
		if len(line.text) > maxLine+len("…") {
			t.Errorf("line %d is %d bytes long", i, len(line.text))
		}
	}
}

func TestContainerWithoutALogSaysWhy(t *testing.T) {
	pulling := newPod(corev1.RestartPolicyAlways, ImagePull, "error")
	for want, pod := range map[string]*corev1.Pod{
		`container "web" in pod "` + pulling.Name + `" is waiting to start: trying and failing to pull image`: pulling,
		`container "web" in pod "` + pulling.Name + `" is waiting to start: ContainerCreating`:                newPod(corev1.RestartPolicyAlways, StartAfter, "1h"),
	} {
		l := newLife(t, pod).until(time.Minute)
		if _, err := loggedInstance(l.pod, "web", false); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	l := newLife(t, newPod(corev1.RestartPolicyAlways)).until(time.Minute)
	if _, err := loggedInstance(l.pod, "web", true); err == nil || !strings.Contains(err.Error(), "previous terminated container") {
		t.Errorf("an instance before the first is refused with: %v", err)
	}
	if _, err := loggedInstance(l.pod, "nothing", false); err == nil || !strings.Contains(err.Error(), "not available") {
		t.Errorf("a container that does not exist is refused with: %v", err)
	}
}
