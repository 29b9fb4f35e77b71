// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// life plays a Pod without an API server: each status that the kubelet wants is
// what the Pod has next, with times in whole seconds as the API keeps them, and the
// clock jumps to where the kubelet wants to be woken.
type life struct {
	t       *testing.T
	kubelet kubelet
	pod     *corev1.Pod
	memo    memo
	begun   time.Time
	now     time.Time
	removed bool
	trace   []string
	logs    records
}

func newLife(t *testing.T, pod *corev1.Pod) *life {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 300e6, time.UTC) // not on a whole second
	return &life{
		t:       t,
		kubelet: kubelet{grace: time.Second, backoff: time.Second, maxBackoff: 4 * time.Second},
		pod:     pod, memo: memo{}, begun: begun, now: begun,
	}
}

// until plays up to a time since the beginning.
func (l *life) until(d time.Duration) *life {
	l.t.Helper()
	end := l.begun.Add(d)
	for range 1000 {
		does, _ := behaviorOf(l.pod)
		before := l.pod.DeepCopy()
		next := l.kubelet.step(l.pod, does, network{hostIPs: []string{"10.192.0.10"}, podIPs: []string{"10.128.0.2", "fd5e:7a01::2"}}, l.memo, l.now)
		if !reflect.DeepEqual(before, l.pod) {
			l.t.Fatal("step has changed the Pod it was given")
		}
		for _, e := range next.events {
			l.trace = append(l.trace, fmt.Sprintf("%s event %s", l.since(), e.reason))
		}
		switch {
		case next.remove && !l.removed:
			l.trace = append(l.trace, l.since()+" removed")
			l.removed = true
			l.pod.DeletionGracePeriodSeconds = new(int64(0))
		case next.status != nil:
			l.pod.Status = *wholeSeconds(next.status)
			l.logs.observe(l.pod)
			l.trace = append(l.trace, l.since()+" "+summary(l.pod))
		case next.wake.IsZero() || next.wake.After(end):
			l.now = end
			return l
		default:
			if !next.wake.After(l.now) {
				l.t.Fatalf("asked to be woken at once and had nothing to do; so far:\n%s", strings.Join(l.trace, "\n"))
			}
			l.now = next.wake
		}
	}
	l.t.Fatalf("a thousand steps and no end; so far:\n%s", strings.Join(l.trace[:20], "\n"))
	return nil
}

// remove asks for the deletion of the Pod, as the API server notes it.
func (l *life) remove(grace int64) {
	at := metav1.NewTime(l.now.Add(time.Duration(grace) * time.Second).Truncate(time.Second))
	l.pod.DeletionTimestamp, l.pod.DeletionGracePeriodSeconds = &at, &grace
}

// restart forgets what only the running simulation knows.
func (l *life) restart() { l.memo = memo{} }

func (l *life) since() string { return l.now.Sub(l.begun).String() }

func (l *life) want(lines ...string) {
	l.t.Helper()
	if !slices.Equal(l.trace, lines) {
		l.t.Errorf("got:\n%s\nwant:\n%s", strings.Join(l.trace, "\n"), strings.Join(lines, "\n"))
	}
}

// wholeSeconds is what the API makes of a status.
func wholeSeconds(status *corev1.PodStatus) *corev1.PodStatus {
	data, err := status.Marshal()
	if err != nil {
		panic(err)
	}
	out := &corev1.PodStatus{}
	if err := out.Unmarshal(data); err != nil {
		panic(err)
	}
	for _, list := range [][]corev1.ContainerStatus{out.InitContainerStatuses, out.ContainerStatuses} {
		for i := range list {
			if r := list[i].State.Running; r != nil {
				r.StartedAt = metav1.NewTime(r.StartedAt.Truncate(time.Second))
			}
			for _, end := range []*corev1.ContainerStateTerminated{list[i].State.Terminated, list[i].LastTerminationState.Terminated} {
				if end != nil {
					end.StartedAt = metav1.NewTime(end.StartedAt.Truncate(time.Second))
					end.FinishedAt = metav1.NewTime(end.FinishedAt.Truncate(time.Second))
				}
			}
		}
	}
	if out.StartTime != nil {
		out.StartTime = new(metav1.NewTime(out.StartTime.Truncate(time.Second)))
	}
	return out
}

// summary is "Running ready: web=running", with the restarts where there are any.
func summary(pod *corev1.Pod) string {
	var b strings.Builder
	b.WriteString(string(pod.Status.Phase))
	switch c := conditionOf(&pod.Status, corev1.PodReady); {
	case c == nil:
		b.WriteString(" " + pod.Status.Reason)
	case c.Status == corev1.ConditionTrue:
		b.WriteString(" ready")
	default:
		b.WriteString(" " + c.Reason)
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			fmt.Fprintf(&b, " %s=", s.Name)
			switch {
			case s.State.Running != nil:
				b.WriteString("running")
			case s.State.Terminated != nil:
				fmt.Fprintf(&b, "exited(%d)", s.State.Terminated.ExitCode)
			default:
				b.WriteString(s.State.Waiting.Reason)
			}
			if s.RestartCount > 0 {
				fmt.Fprintf(&b, "*%d", s.RestartCount)
			}
		}
	}
	return b.String()
}

// newPod returns a bound Pod with one container; annotations are name and value.
func newPod(policy corev1.RestartPolicy, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID("0f1e"), Generation: 3, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName: "node-0", RestartPolicy: policy,
			Containers: []corev1.Container{{Name: "web", Image: "nginx"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		}},
	}
	for pair := range slices.Chunk(annotations, 2) {
		pod.Annotations[pair[0]] = pair[1]
	}
	return pod
}

func TestPodRunsAndIsReadyInOneStep(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways)).until(time.Hour)
	l.want("0s Running ready web=running")

	s := l.pod.Status
	if s.PodIP != "10.128.0.2" || len(s.PodIPs) != 2 || s.HostIP != "10.192.0.10" || len(s.HostIPs) != 1 {
		t.Errorf("addresses: pod %s %v, host %s %v", s.PodIP, s.PodIPs, s.HostIP, s.HostIPs)
	}
	if s.StartTime == nil || s.QOSClass != corev1.PodQOSBestEffort || s.ObservedGeneration != 3 {
		t.Errorf("start time %v, QoS %s, observed generation %d", s.StartTime, s.QOSClass, s.ObservedGeneration)
	}
	c := s.ContainerStatuses[0]
	if !c.Ready || c.Started == nil || !*c.Started || c.RestartCount != 0 || c.Image != "nginx" || c.ImageID == "" || c.ContainerID == "" {
		t.Errorf("container: %+v", c)
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		if got := conditionOf(&s, kind); got == nil || got.Status != corev1.ConditionTrue {
			t.Errorf("condition %s: %+v", kind, got)
		}
	}
}

func TestPodLives(t *testing.T) {
	always, onFailure, never := corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	for _, test := range []struct {
		name  string
		pod   *corev1.Pod
		until time.Duration
		want  []string
	}{{
		name: "slow to start and to become ready",
		pod:  newPod(always, StartAfter, "5s", ReadyAfter, "2500ms"), until: time.Hour,
		want: []string{
			"0s Pending ContainersNotReady web=ContainerCreating",
			"5s Running ContainersNotReady web=running",
			"7.5s Running ready web=running",
		},
	}, {
		name: "never ready",
		pod:  newPod(always, ReadyAfter, "never"), until: time.Hour,
		want: []string{"0s Running ContainersNotReady web=running"},
	}, {
		name: "ready no more after a while",
		pod:  newPod(always, ReadyAfter, "1s", UnreadyAfter, "10s"), until: time.Hour,
		want: []string{
			"0s Running ContainersNotReady web=running",
			"1s Running ready web=running",
			"11s Running ContainersNotReady web=running",
		},
	}, {
		name: "completes",
		pod:  newPod(never, ExitAfter, "20s"), until: time.Hour,
		want: []string{"0s Running ready web=running", "20s Succeeded PodCompleted web=exited(0)"},
	}, {
		name: "completes and is restarted only where it failed",
		pod:  newPod(onFailure, ExitAfter, "20s"), until: time.Hour,
		want: []string{"0s Running ready web=running", "20s Succeeded PodCompleted web=exited(0)"},
	}, {
		name: "fails",
		pod:  newPod(never, ExitAfter, "20s", ExitCode, "3"), until: time.Hour,
		want: []string{"0s Running ready web=running", "20s Failed PodFailed web=exited(3)"},
	}, {
		name: "fails soon where no time is said",
		pod:  newPod(never, ExitCode, "1"), until: time.Hour,
		want: []string{"0s Running ready web=running", "1s Failed PodFailed web=exited(1)"},
	}, {
		name: "crash loop: once at once, then backing off, longer each time, up to a limit",
		pod:  newPod(always, ExitAfter, "500ms", ExitCode, "1"), until: 14 * time.Second,
		want: []string{
			"0s Running ready web=running",
			"500ms Running ContainersNotReady web=exited(1)",
			"500ms Running ready web=running*1",
			"1s Running ContainersNotReady web=exited(1)*1",
			"1s event BackOff", "1s Running ContainersNotReady web=CrashLoopBackOff*1",
			"2s Running ready web=running*2",
			"2.5s Running ContainersNotReady web=exited(1)*2",
			"2.5s event BackOff", "2.5s Running ContainersNotReady web=CrashLoopBackOff*2",
			"4.5s Running ready web=running*3",
			"5s Running ContainersNotReady web=exited(1)*3",
			"5s event BackOff", "5s Running ContainersNotReady web=CrashLoopBackOff*3",
			"9s Running ready web=running*4",
			"9.5s Running ContainersNotReady web=exited(1)*4",
			"9.5s event BackOff", "9.5s Running ContainersNotReady web=CrashLoopBackOff*4",
			"13.5s Running ready web=running*5",
			"14s Running ContainersNotReady web=exited(1)*5",
			"14s event BackOff", "14s Running ContainersNotReady web=CrashLoopBackOff*5",
		},
	}, {
		name: "exits at once, always: backs off like any other",
		pod:  newPod(always, ExitAfter, "0s"), until: time.Second / 2,
		want: []string{
			"0s Running ready web=running",
			"0s Running ContainersNotReady web=exited(0)",
			"0s Running ready web=running*1",
			"0s Running ContainersNotReady web=exited(0)*1",
			"0s event BackOff", "0s Running ContainersNotReady web=CrashLoopBackOff*1",
		},
	}, {
		name: "an image that cannot be pulled",
		pod:  newPod(always, ImagePull, "error"), until: time.Hour,
		want: []string{
			"0s event Failed", "0s event Failed", "0s Pending ContainersNotReady web=ErrImagePull",
			"1s event BackOff", "1s event Failed", "1s Pending ContainersNotReady web=ImagePullBackOff",
		},
	}, {
		name:  "a Pod past its deadline",
		pod:   with(newPod(always), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(30)) }),
		until: time.Hour,
		want:  []string{"0s Running ready web=running", "30s Failed PodFailed web=exited(143)"},
	}, {
		name:  "a Job's Pod",
		pod:   with(newPod(never), ownedBy("batch/v1", "Job")),
		until: time.Hour,
		want:  []string{"0s Running ready web=running", "1s Succeeded PodCompleted web=exited(0)"},
	}, {
		name:  "a Job's Pod told to stay",
		pod:   with(newPod(never, ExitAfter, "never"), ownedBy("batch/v1", "Job")),
		until: time.Hour,
		want:  []string{"0s Running ready web=running"},
	}, {
		name: "init containers and sidecars",
		pod: with(newPod(never, StartAfter, "1s", ExitAfter, "2s"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{Name: "init"}, {Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			}
		}),
		until: time.Hour,
		want: []string{
			"0s Pending ContainersNotReady init=PodInitializing side=PodInitializing web=PodInitializing",
			"1s Running ready init=exited(0) side=running web=running",
			"3s Succeeded PodCompleted init=exited(0) side=exited(0) web=exited(0)",
		},
	}, {
		name: "an init container whose image cannot be pulled",
		pod: with(newPod(never), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "registry.invalid/init:v1"}, {Name: "later"}}
		}),
		until: time.Hour,
		want: []string{
			"0s event Failed", "0s event Failed",
			"0s Pending ContainersNotReady init=ErrImagePull later=PodInitializing web=PodInitializing",
			"1s event BackOff", "1s event Failed",
			"1s Pending ContainersNotReady init=ImagePullBackOff later=PodInitializing web=PodInitializing",
		},
	}, {
		name: "an image that can be pulled at the third attempt",
		pod:  newPod(always, ImagePull, "2"), until: time.Hour,
		want: []string{
			"0s event Failed", "0s event Failed", "0s Pending ContainersNotReady web=ErrImagePull",
			"1s event BackOff", "1s event Failed", "1s Pending ContainersNotReady web=ImagePullBackOff",
			"2s event Failed", "2s event Failed", "2s Pending ContainersNotReady web=ErrImagePull",
			"3s event BackOff", "3s event Failed", "3s Pending ContainersNotReady web=ImagePullBackOff",
			"5s Running ready web=running",
		},
	}, {
		name: "a Pod that fails at first, and then runs on",
		pod:  newPod(always, FailFirst, "2"), until: time.Hour,
		want: []string{
			"0s Running ready web=running",
			"1s Running ContainersNotReady web=exited(1)",
			"1s Running ready web=running*1",
			"2s Running ContainersNotReady web=exited(1)*1",
			"2s event BackOff", "2s Running ContainersNotReady web=CrashLoopBackOff*1",
			"3s Running ready web=running*2",
		},
	}, {
		name: "a Pod that fails at first, and is restarted on failure until it succeeds",
		pod:  newPod(onFailure, FailFirst, "1", ExitAfter, "2s", ExitCode, "7"), until: time.Hour,
		want: []string{
			"0s Running ready web=running",
			"2s Running ContainersNotReady web=exited(7)",
			"2s Running ready web=running*1",
			"4s Succeeded PodCompleted web=exited(0)*1",
		},
	}, {
		name: "a Pod that fails at first and was told to stay",
		pod:  newPod(onFailure, FailFirst, "1", ExitAfter, "never"), until: time.Hour,
		want: []string{
			"0s Running ready web=running",
			"1s Running ContainersNotReady web=exited(1)",
			"1s Running ready web=running*1",
		},
	}, {
		name: "containers that end each in their own way",
		pod: with(newPod(never, ExitAfter, "5s", ExitCode+".db", "3", ExitAfter+".log", "never"), func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "db"}, corev1.Container{Name: "log"})
		}),
		until: 10 * time.Second,
		want: []string{
			"0s Running ready web=running db=running log=running",
			"1s Running ContainersNotReady web=running db=exited(3) log=running",
			"5s Running ContainersNotReady web=exited(0) db=exited(3) log=running",
		},
	}, {
		name: "init containers that take their time, one after the other",
		pod: with(newPod(always, ExitAfter+".first", "2s", ExitAfter+".last", "3s"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "first"}, {Name: "last"}}
		}),
		until: time.Hour,
		want: []string{
			"0s Pending ContainersNotReady first=running last=PodInitializing web=PodInitializing",
			"2s Pending ContainersNotReady first=exited(0) last=running web=PodInitializing",
			"5s Running ready first=exited(0) last=exited(0) web=running",
		},
	}, {
		name: "an init container that fails ends a Pod that is never restarted, with its sidecars",
		pod: with(newPod(never, ExitCode+".init", "4"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}, {Name: "init"},
			}
		}),
		until: time.Hour,
		want: []string{
			"0s Pending ContainersNotReady side=running init=running web=PodInitializing",
			"1s Failed PodFailed side=exited(0) init=exited(4) web=PodInitializing",
		},
	}, {
		name: "an init container that fails at first is restarted",
		pod: with(newPod(always, FailFirst+".init", "2", ExitAfter+".init", "500ms"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		}),
		until: time.Hour,
		want: []string{
			"0s Pending ContainersNotReady init=running web=PodInitializing",
			"500ms Pending ContainersNotReady init=exited(1) web=PodInitializing",
			"500ms Pending ContainersNotReady init=running*1 web=PodInitializing",
			"1s Pending ContainersNotReady init=exited(1)*1 web=PodInitializing",
			"1s event BackOff", "1s Pending ContainersNotReady init=CrashLoopBackOff*1 web=PodInitializing",
			"2s Pending ContainersNotReady init=running*2 web=PodInitializing",
			"2.5s Running ready init=exited(0)*2 web=running",
		},
	}, {
		name: "a sidecar that crashes is restarted beside the containers",
		pod: with(newPod(always, FailFirst+".side", "1"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}, {Name: "init"}}
		}),
		until: time.Hour,
		want: []string{
			"0s Running ready side=running init=exited(0) web=running",
			"1s Running ContainersNotReady side=exited(1) init=exited(0) web=running",
			"1s Running ready side=running*1 init=exited(0) web=running",
		},
	}, {
		name: "readiness that flips",
		pod:  newPod(always, ReadyAfter, "1s", FlipEvery, "2s"), until: 6 * time.Second,
		want: []string{
			"0s Running ContainersNotReady web=running",
			"1s Running ready web=running",
			"3s Running ContainersNotReady web=running",
			"5s Running ready web=running",
		},
	}, {
		name: "a kubelet that refuses the Pod",
		pod:  newPod(always, Reject, "OutOfcpu"), until: time.Hour,
		want: []string{"0s event OutOfcpu", "0s Failed OutOfcpu"},
	}, {
		name:  "a readiness gate that nobody opens",
		pod:   with(newPod(always), gated),
		until: time.Hour,
		want:  []string{"0s Running ReadinessGatesNotReady web=running"},
	}} {
		t.Run(test.name, func(t *testing.T) {
			newLife(t, test.pod).until(test.until).want(test.want...)
		})
	}
}

func TestReadinessFlipsInOrderAndDiffersFromPodToPod(t *testing.T) {
	flips := map[types.UID]string{}
	for _, uid := range []types.UID{"a", "b"} {
		l := newLife(t, with(newPod(corev1.RestartPolicyAlways, FlipEvery, "1s+1s"), func(p *corev1.Pod) { p.UID = uid }))
		l.until(30 * time.Second).restart()
		l.until(time.Minute)
		for i, line := range l.trace {
			if want := []string{"Running ready", "Running ContainersNotReady"}[i%2]; !strings.Contains(line, want) {
				t.Errorf("Pod %s: %s, want %s", uid, line, want)
			}
		}
		if n := len(l.trace); n < 59 || n > 61 {
			t.Errorf("Pod %s flips %d times in a minute", uid, n)
		}
		flips[uid] = strings.Join(l.trace, "\n")
	}
	if flips["a"] == flips["b"] {
		t.Error("two Pods flip at the same times")
	}
}

func TestRefusedPodSaysWhyAsAKubeletDoes(t *testing.T) {
	for reason, want := range map[string]string{
		"OutOfcpu":                 "Pod was rejected: Node didn't have enough resource: cpu, requested: 250, used: 0, capacity: 0",
		"OutOfpods":                "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 0, capacity: 0",
		"OutOfmemory":              "Pod was rejected: Node didn't have enough resource: memory, requested: 1024, used: 0, capacity: 0",
		"NodeAffinity":             "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		"UnexpectedAdmissionError": "Pod was rejected: Update plugin resources failed due to a simulated error, which is unexpected.",
	} {
		l := newLife(t, with(newPod(corev1.RestartPolicyAlways, Reject, reason), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1Ki"),
			}
		})).until(time.Hour)
		s := l.pod.Status
		if s.Phase != corev1.PodFailed || s.Reason != reason || s.Message != want || len(s.ContainerStatuses) != 0 || s.StartTime != nil {
			t.Errorf("%s: the status is %+v\nwant the message %s", reason, s, want)
		}
	}
	running := newLife(t, newPod(corev1.RestartPolicyAlways)).until(time.Second)
	running.pod.Annotations[Reject] = "OutOfcpu"
	running.until(time.Hour).want("0s Running ready web=running")
}

func TestDeletedPodIsUnreadyThenEndsThenGoes(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways)).until(time.Minute)
	l.remove(30)
	l.until(time.Hour).want(
		"0s Running ready web=running",
		"1m0s Running ContainersNotReady web=running",
		"1m1s Failed PodFailed web=exited(143)",
		"1m1s removed",
	)
}

func TestGracePeriod(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit time.Duration
		asked int64
		after time.Duration
		code  int32
	}{
		{"shortened to the limit", time.Second, 30, time.Second, exitTerminated},
		{"shorter than the limit", 5 * time.Second, 2, 2 * time.Second, exitTerminated},
		{"without a limit", NoLimit, 30, 30 * time.Second, exitTerminated},
		{"none asked for", time.Second, 0, 0, exitKilled},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLife(t, newPod(corev1.RestartPolicyAlways))
			l.kubelet.grace = test.limit
			l.until(time.Minute)
			l.remove(test.asked)
			l.until(time.Minute + test.after)
			if got := l.pod.Status.ContainerStatuses[0].State.Terminated; got == nil || got.ExitCode != test.code {
				t.Errorf("after %s the container is %+v", test.after, l.pod.Status.ContainerStatuses[0].State)
			}
			if test.after > 0 && !slices.Contains(l.trace, "1m0s Running ContainersNotReady web=running") {
				t.Errorf("not seen terminating:\n%s", strings.Join(l.trace, "\n"))
			}
		})
	}
}

func TestEndedPodWithFinalizerIsRemovedOnce(t *testing.T) {
	l := newLife(t, with(newPod(corev1.RestartPolicyNever, ExitAfter, "1s"), func(p *corev1.Pod) {
		p.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	})).until(time.Minute)
	l.remove(30)
	l.until(time.Hour).want(
		"0s Running ready web=running",
		"1s Succeeded PodCompleted web=exited(0)",
		"1m0s removed",
	)
}

func TestPodDeletedBeforeItRanEndsAtOnce(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways, ImagePull, "error")).until(time.Minute)
	l.trace = nil
	l.remove(30)
	l.until(time.Hour).want("1m0s Failed PodFailed web=exited(137)", "1m0s removed")
}

func TestReadinessGateOpensAndCloses(t *testing.T) {
	l := newLife(t, with(newPod(corev1.RestartPolicyAlways), gated)).until(time.Second)
	set := func(status corev1.ConditionStatus) {
		if c := conditionOf(&l.pod.Status, "example.com/gate"); c != nil {
			c.Status = status
		} else {
			l.pod.Status.Conditions = append(l.pod.Status.Conditions, corev1.PodCondition{Type: "example.com/gate", Status: status})
		}
	}
	set(corev1.ConditionTrue)
	l.until(time.Minute)
	set(corev1.ConditionFalse)
	l.until(time.Hour).want(
		"0s Running ReadinessGatesNotReady web=running",
		"1s Running ready web=running",
		"1m0s Running ReadinessGatesNotReady web=running",
	)
}

func TestImageThatIsReplacedIsPulledAndRestartsTheContainer(t *testing.T) {
	pod := newPod(corev1.RestartPolicyAlways)
	pod.Spec.Containers[0].Image = "registry.invalid/web:v1"
	l := newLife(t, pod).until(time.Minute)
	l.pod.Spec.Containers[0].Image = "web:v2"
	l.until(2 * time.Minute)
	l.pod.Spec.Containers[0].Image = "web:v3"
	l.until(time.Hour).want(
		"0s event Failed", "0s event Failed", "0s Pending ContainersNotReady web=ErrImagePull",
		"1s event BackOff", "1s event Failed", "1s Pending ContainersNotReady web=ImagePullBackOff",
		"1m0s Running ready web=running",
		"2m0s Running ready web=running*1",
	)
}

func TestSimulationGoesOnAfterARestartWherePodsAre(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyNever, StartAfter, "5s", ExitAfter, "20s"))
	l.until(2 * time.Second).restart()
	l.until(10 * time.Second).restart()
	// Without the exact times, those of the API count: up to a second early.
	l.until(time.Hour).want(
		"0s Pending ContainersNotReady web=ContainerCreating",
		"4.7s Running ready web=running",
		"24.7s Succeeded PodCompleted web=exited(0)",
	)
}

func TestAnnotationsThatChangeTakeEffect(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways, ReadyAfter, "never")).until(time.Minute)
	delete(l.pod.Annotations, ReadyAfter)
	l.until(2 * time.Minute)
	l.pod.Annotations[UnreadyAfter] = "0s"
	l.until(time.Hour).want(
		"0s Running ContainersNotReady web=running",
		"1m0s Running ready web=running",
		"2m0s Running ContainersNotReady web=running",
	)
}

func TestEphemeralContainerIsStarted(t *testing.T) {
	l := newLife(t, newPod(corev1.RestartPolicyAlways)).until(time.Second)
	l.pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox"},
	}}
	l.until(time.Minute)
	got := l.pod.Status.EphemeralContainerStatuses
	if len(got) != 1 || got[0].Name != "debugger" || got[0].State.Running == nil {
		t.Errorf("ephemeral containers: %+v", got)
	}
}

func with(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

func gated(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
}

func ownedBy(version, kind string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "owner", UID: "1", Controller: new(true)}}
	}
}
