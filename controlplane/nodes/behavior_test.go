// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controlplane/metrics"
)

func TestMalformedAnnotationsAreToldAndIgnored(t *testing.T) {
	for _, test := range []struct{ name, value, problem string }{
		{StartAfter, "soon", `annotation sim.setpoint.io/start-after is ignored: "soon" is not a duration such as "5s" or "5s+3s"`},
		{StartAfter, "never", `annotation sim.setpoint.io/start-after is ignored: "never" is not a duration such as "5s" or "5s+3s"`},
		{StartAfter, "", `annotation sim.setpoint.io/start-after is ignored: "" is not a duration such as "5s" or "5s+3s"`},
		{ReadyAfter, "5", `annotation sim.setpoint.io/ready-after is ignored: "5" is not a duration such as "5s", "5s+3s" or "never"`},
		{ReadyAfter, "5s+", `annotation sim.setpoint.io/ready-after is ignored: "5s+" is not a duration such as "5s", "5s+3s" or "never"`},
		{UnreadyAfter, "-5s", `annotation sim.setpoint.io/unready-after is ignored: "-5s" is negative or too long`},
		{ExitAfter, "2562047h+2562047h", `annotation sim.setpoint.io/exit-after is ignored: "2562047h+2562047h" is negative or too long`},
		{ExitCode, "256", `annotation sim.setpoint.io/exit-code is ignored: "256" is not an exit code from 0 to 255`},
		{ExitCode, "-1", `annotation sim.setpoint.io/exit-code is ignored: "-1" is not an exit code from 0 to 255`},
		{ImagePull, "fail", `annotation sim.setpoint.io/image-pull is ignored: "fail" is neither "error" nor "ok", nor a number of attempts from 1 to 1000`},
		{ImagePull, "0", `annotation sim.setpoint.io/image-pull is ignored: "0" is neither "error" nor "ok", nor a number of attempts from 1 to 1000`},
		{FlipEvery, "1ms", `annotation sim.setpoint.io/flip-every is ignored: "1ms": at least 100ms, and a random part that is not longer than the other`},
		{FlipEvery, "1s+2s", `annotation sim.setpoint.io/flip-every is ignored: "1s+2s": at least 100ms, and a random part that is not longer than the other`},
		{Reject, "OutOfLuck", `annotation sim.setpoint.io/reject is ignored: "OutOfLuck" is not a reason; choose OutOfcpu, OutOfmemory, OutOfpods, OutOfephemeral-storage, NodeAffinity, UnexpectedAdmissionError`},
		{FailFirst, "-1", `annotation sim.setpoint.io/fail-first is ignored: "-1" is not a number of runs, such as 3`},
		{ExitCode + ".db", "1", `annotation sim.setpoint.io/exit-code.db is ignored: the Pod has no container "db"`},
		{ExitCode + ".web", "x", `annotation sim.setpoint.io/exit-code.web is ignored: "x" is not an exit code from 0 to 255`},
		{metrics.UsageCPU, "x", `annotation sim.setpoint.io/usage-cpu is ignored: "x" is not a quantity such as "200m" or "64Mi"; use "200m", "100m..400m over 60s" or "100m..400m every 2m", each of them also with " shared" after it, or "none"`},
	} {
		got, problems := behaviorOf(newPod(corev1.RestartPolicyAlways, test.name, test.value))
		if len(problems) != 1 || problems[0] != test.problem {
			t.Errorf("%s=%q: got %q, want %q", test.name, test.value, problems, test.problem)
		}
		if want, _ := behaviorOf(newPod(corev1.RestartPolicyAlways)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s=%q counts as %+v, want %+v", test.name, test.value, got, want)
		}
	}
}

func TestUnknownAnnotationOfThePrefixIsTold(t *testing.T) {
	_, problems := behaviorOf(newPod(corev1.RestartPolicyAlways, Prefix+"begin-after", "5s", "example.com/start-after", "x"))
	if len(problems) != 1 || !strings.Contains(problems[0], "begin-after is ignored: no such annotation") || !strings.Contains(problems[0], StartAfter) {
		t.Errorf("got %q", problems)
	}
}

func TestJitterIsSpreadAndStaysTheSame(t *testing.T) {
	s, err := parseSpan("5s+3s", false)
	if err != nil {
		t.Fatal(err)
	}
	low, high := time.Hour, time.Duration(0)
	for i := range 100 {
		uid := types.UID(strings.Repeat("x", i))
		got := s.of(uid, "start", 0)
		if again := s.of(uid, "start", 0); again != got {
			t.Fatalf("asked twice: %s and %s", got, again)
		}
		low, high = min(low, got), max(high, got)
	}
	if low < 5*time.Second || high > 8*time.Second || high-low < 2*time.Second {
		t.Errorf("100 Pods got from %s to %s; want all of 5s to 8s used", low, high)
	}
}

func TestImagesThatCannotBePulled(t *testing.T) {
	for image, want := range map[string]bool{
		"nginx":                          true,
		"nginx:1.27":                     true,
		"invalid":                        true, // a name on the default registry
		"library/invalid:1":              true,
		"registry.k8s.io/pause@sha256:0": true,
		"invalid/web":                    false,
		"registry.invalid/web:v1":        false,
		"registry.invalid:5000/web":      false,
		"nginx:pull-error":               false,
	} {
		if got := (behavior{}).pullable(image); got != want {
			t.Errorf("%s: pullable %t, want %t", image, got, want)
		}
	}
	if !(behavior{imagePull: imagePull{ok: true}}).pullable("registry.invalid/web") {
		t.Error("the annotation does not overrule the name")
	}
}

func FuzzBehavior(f *testing.F) {
	f.Add("5s+3s", "7", "error")
	f.Add("never", "-1", "")
	f.Add("100ms+100ms", "2", "3")
	f.Add("OutOfcpu", "1..2 over 1s", "ok")
	f.Fuzz(func(t *testing.T, value, code, pull string) {
		pod := newPod(corev1.RestartPolicyAlways, StartAfter, value, ReadyAfter, value, UnreadyAfter, value, FlipEvery, value,
			ExitAfter, value, ExitAfter+".web", value, ExitCode, code, FailFirst, code, ImagePull, pull, Reject, value, metrics.UsageCPU, code)
		does, problems := behaviorOf(pod)
		for _, problem := range problems {
			if !strings.HasPrefix(problem, "annotation "+Prefix) {
				t.Errorf("problem %q names no annotation", problem)
			}
		}
		// A Pod is played without a failure, and is never woken in the past.
		now := time.Unix(0, 0)
		next := kubelet{backoff: time.Second, maxBackoff: time.Minute}.step(pod, does, network{}, memo{}, now)
		if next.status == nil || !next.wake.IsZero() && !next.wake.After(now) {
			t.Errorf("the first step is %+v", next)
		}
		for name, s := range map[string]span{StartAfter: does.start, ReadyAfter: does.ready, UnreadyAfter: does.unready, FlipEvery: does.flip, ExitAfter: does.exits.after} {
			if d := s.of("uid", name, 0); d < 0 {
				t.Errorf("%s %q lasts %s", name, value, d)
			}
		}
	})
}
