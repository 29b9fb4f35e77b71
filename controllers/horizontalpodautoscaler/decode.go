// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The metrics APIs are served by programs of other projects, so their answers are decoded field by
// field: a value that cannot be used is no error of the other values.
//
// The structs are those fields of the types of k8s.io/metrics/pkg/apis that the controller uses.

// sample is a metric of one Pod.
type sample struct {
	value  int64 // in thousandths
	at     time.Time
	window time.Duration // over which it was measured, up to at
}

// defaultWindow is the window of a custom metric that names none.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler/metrics, metricServerDefaultMetricWindow.
const defaultWindow = time.Minute

// podMetricsList is a PodMetricsList of metrics.k8s.io/v1beta1.
type podMetricsList struct {
	Items []struct {
		Metadata   struct{ Name string }
		Timestamp  json.RawMessage
		Window     json.RawMessage
		Containers []struct {
			Name  string
			Usage map[corev1.ResourceName]json.RawMessage
		}
	}
}

// metricValueList is a MetricValueList of custom.metrics.k8s.io, v1beta1 or v1beta2, or an
// ExternalMetricValueList of external.metrics.k8s.io/v1beta1.
type metricValueList struct {
	Items []struct {
		DescribedObject struct{ Name string }
		Timestamp       json.RawMessage
		Window          *int64 // in seconds; v1beta1
		WindowSeconds   *int64 // v1beta2
		Value           json.RawMessage
	}
}

// samples are the metrics of Pods, by the names of the Pods.
type samples struct {
	of map[string]sample
	// unusable says what is wrong with a value, by the name of its Pod.
	unusable map[string]string
}

func newSamples() samples {
	return samples{of: map[string]sample{}, unusable: map[string]string{}}
}

// put adds the metric of a Pod. If a Pod has several, the newest one counts.
func (s *samples) put(pod string, is sample, err error) {
	if err != nil {
		s.unusable[pod] = err.Error()
		return
	}
	if known, twice := s.of[pod]; !twice || known.at.Before(is.at) {
		s.of[pod] = is
	}
}

// decodePodMetrics returns how much of a resource Pods use. container is the name of the container
// whose usage counts; empty is the sum of all. A Pod without the metric is left out.
func decodePodMetrics(body []byte, of corev1.ResourceName, container string) (samples, error) {
	var list podMetricsList
	if err := json.Unmarshal(body, &list); err != nil {
		return samples{}, fmt.Errorf("reading the answer: %w", err)
	}
	if len(list.Items) == 0 {
		return samples{}, errors.New("no metrics returned from resource metrics API")
	}
	all := newSamples()
	for _, item := range list.Items {
		is := sample{at: timeOf(item.Timestamp), window: durationOf(item.Window)}
		found, complete := false, true
		var wrong error
		for _, c := range item.Containers {
			if container != "" && c.Name != container {
				continue
			}
			raw, has := c.Usage[of]
			if !has {
				complete = false
				continue
			}
			value, err := parseMilli(raw)
			if err == nil && value < 0 {
				err = fmt.Errorf("%s, which is negative", raw)
			}
			if err != nil {
				wrong = fmt.Errorf("container %s uses %w", c.Name, err)
			}
			found, is.value = true, add(is.value, value)
		}
		if found && complete {
			all.put(item.Metadata.Name, is, wrong)
		}
	}
	return all, nil
}

// decodePodValues returns a custom metric of Pods.
func decodePodValues(body []byte) (samples, error) {
	var list metricValueList
	if err := json.Unmarshal(body, &list); err != nil {
		return samples{}, fmt.Errorf("reading the answer: %w", err)
	}
	if len(list.Items) == 0 {
		return samples{}, errors.New("no metrics returned from custom metrics API")
	}
	all := newSamples()
	for _, item := range list.Items {
		window := defaultWindow
		if item.WindowSeconds != nil {
			window = seconds(*item.WindowSeconds)
		} else if item.Window != nil {
			window = seconds(*item.Window)
		}
		value, err := parseMilli(item.Value)
		all.put(item.DescribedObject.Name, sample{value: value, at: timeOf(item.Timestamp), window: window}, err)
	}
	return all, nil
}

// decodeValues returns the values of a metric that is of no Pod.
func decodeValues(body []byte) ([]int64, error) {
	var list metricValueList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	var all []int64
	for _, item := range list.Items {
		value, err := parseMilli(item.Value)
		if err != nil {
			return nil, fmt.Errorf("the value is %w", err)
		}
		all = append(all, value)
	}
	return all, nil
}

// timeOf returns a time that came as JSON, and the zero time if it is none.
func timeOf(raw json.RawMessage) time.Time {
	var t metav1.Time
	if len(raw) == 0 || t.UnmarshalJSON(raw) != nil {
		return time.Time{}
	}
	return t.Time
}

// durationOf returns a duration that came as JSON, and 0 if it is none or negative.
func durationOf(raw json.RawMessage) time.Duration {
	var d metav1.Duration
	if len(raw) == 0 || d.UnmarshalJSON(raw) != nil {
		return 0
	}
	return max(d.Duration, 0)
}

// seconds returns a number of seconds, of a day at most: no window is longer.
func seconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), 24*60*60)) * time.Second
}
