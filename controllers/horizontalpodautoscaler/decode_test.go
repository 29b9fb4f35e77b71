// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestUsageIsTheSumOfTheContainersOrThatOfOne(t *testing.T) {
	const body = `{"items":[
		{"metadata":{"name":"a"},"timestamp":"2026-03-02T10:00:00Z","window":"30s","containers":[{"name":"main","usage":{"cpu":"20m","memory":"1Ki"}},{"name":"mesh","usage":{"cpu":"5m"}}]},
		{"metadata":{"name":"b"},"containers":[{"name":"main","usage":{"cpu":"1","memory":"1Ki"}}]},
		{"metadata":{"name":"a"},"timestamp":"2026-03-02T09:00:00Z","containers":[{"name":"main","usage":{"cpu":"9"}}]},
		{"metadata":{"name":"c"},"containers":[]}]}`
	for _, test := range []struct {
		of        corev1.ResourceName
		container string
		want      map[string]int64
	}{
		{"cpu", "", map[string]int64{"a": 25, "b": 1000}},
		{"cpu", "mesh", map[string]int64{"a": 5}},
		{"memory", "", map[string]int64{"b": 1024_000}},
		{"memory", "main", map[string]int64{"a": 1024_000, "b": 1024_000}},
	} {
		got, err := decodePodMetrics([]byte(body), test.of, test.container)
		if err != nil || len(got.of) != len(test.want) {
			t.Errorf("%s of %q: %+v (%v), want %v", test.of, test.container, got, err, test.want)
		}
		for pod, value := range test.want {
			if got.of[pod].value != value {
				t.Errorf("%s of %q: Pod %s uses %d, want %d", test.of, test.container, pod, got.of[pod].value, value)
			}
		}
	}
	got, err := decodePodMetrics([]byte(body), "cpu", "")
	if a := got.of["a"]; err != nil || a.window != 30*time.Second || a.at.Hour() != 10 {
		t.Errorf("the sample is %+v (%v)", a, err)
	}
}

func TestValuesThatAreNoQuantities(t *testing.T) {
	for raw, want := range map[string]string{
		`"NaN"`: `"NaN", which is no quantity`, `"Inf"`: `"Inf", which is no quantity`, `null`: "no value", `""`: "no value", `{}`: `"{}", which is no quantity`,
		`"1e999"`: `"1e999", whose exponent is too large`, `1e-999`: `"1e-999", whose exponent is too large`,
	} {
		if _, err := parseMilli([]byte(raw)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	for raw, want := range map[string]int64{
		`"1"`: 1000, `1`: 1000, `"1500m"`: 1500, `"1E"`: math.MaxInt64, `"9e18"`: math.MaxInt64, `"-9e18"`: -math.MaxInt64, `"1n"`: 1, `"-2"`: -2000, `"2e1"`: 20_000,
	} {
		if got, err := parseMilli([]byte(raw)); err != nil || got != want {
			t.Errorf("%s: %d (%v), want %d", raw, got, err, want)
		}
	}
}

// FuzzMetrics reads answers of metrics APIs. Whatever they are, the arithmetic has a result.
func FuzzMetrics(f *testing.F) {
	f.Add([]byte(podMetrics("cpu", map[string]string{"p0": "100m", "p1": "NaN"})))
	f.Add([]byte(`{"items":[{"describedObject":{"name":"p0"},"value":"1e3","window":60},{"describedObject":{"name":"p1"},"value":5,"windowSeconds":-1}]}`))
	f.Add([]byte(`{"items":[{"metadata":{"name":"p0"},"timestamp":"x","window":5,"containers":[{"usage":{"cpu":"1e99"}},{"usage":{"cpu":9223372036854775807}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		o := Defaults()
		pods, _ := mixed("- - pending")
		check := func(metrics samples, err error) {
			if err != nil {
				return
			}
			c := o.count(pods, corev1.ResourceCPU, metrics, now)
			if len(c.measured)+len(c.unready)+len(c.missing)+len(c.ignored) != len(pods) {
				t.Fatalf("of %d Pods it counts %+v", len(pods), c)
			}
			if r, err := c.byUtilization(3, 50, tolerances{0.1, 0.1}, corev1.ResourceCPU, ""); err == nil && r.replicas < 0 {
				t.Fatalf("it wants %+v", r)
			}
			if _, err := c.byValue(3, 1, tolerances{}); err == nil && len(c.measured) == 0 {
				t.Fatal("it wants something without metrics")
			}
		}
		check(decodePodMetrics(body, corev1.ResourceCPU, ""))
		check(decodePodMetrics(body, corev1.ResourceCPU, "main"))
		check(decodePodValues(body))
		if values, err := decodeValues(body); err == nil {
			for _, value := range values {
				byShare(3, value, 1, tolerances{})
			}
		}
	})
}

// FuzzHistory reads annotations, which any client may have written.
func FuzzHistory(f *testing.F) {
	f.Add(`{"size":4,"highest":[{"at":"2026-03-02T10:00:00Z","replicas":4}],"lowest":[{"at":"2026-03-02T09:00:00Z","replicas":2}],"changes":[{"at":"9999-03-02T10:00:00Z","by":2}]}`)
	f.Add(`{"size":-1}`)
	f.Add(`{"highest":[{"replicas":2147483647}],"changes":[{"by":-2147483648,"unsure":true}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		o := Defaults()
		hpa := autoscaler(1, 10, slowly)
		hpa.Annotations = map[string]string{historyAnnotation: text}
		h := o.takeOver(hpa, 3, now)
		is, h := o.size(hpa, ask{current: 3, recommended: 9, least: 1, most: 10}, h, now)
		if is.replicas < 1 || is.replicas > 10 {
			t.Fatalf("it wants %d", is.replicas)
		}
		again, _, ok := load(h.save(3), now)
		if h.save(3) != "" && (!ok || again.save(3) != h.save(3)) {
			t.Fatalf("%s is read as %+v", h.save(3), again)
		}
	})
}
