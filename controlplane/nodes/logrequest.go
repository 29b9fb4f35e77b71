// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// logRequest is a request for a log, as the kubelet's API has it: the query is a
// PodLogOptions of k8s.io/api/core/v1.
type logRequest struct {
	pod       types.NamespacedName
	container string

	follow, previous, timestamps bool

	since  time.Time // zero is from the beginning
	tail   int64     // the last lines of those there are; negative is all
	limit  int64     // bytes of the answer; negative is no limit
	stream string    // corev1.LogStreamStdout, LogStreamStderr or LogStreamAll
}

// parseLogQuery reads a query. Parameters that it does not know are ignored, as a
// kubelet ignores them; the rules are those of ValidatePodLogOptions in
// pkg/apis/core/validation of Kubernetes 1.37.
func parseLogQuery(query url.Values, now time.Time) (logRequest, error) {
	q := logRequest{tail: -1, limit: -1, stream: corev1.LogStreamAll}
	for name, to := range map[string]*bool{"follow": &q.follow, "previous": &q.previous, "timestamps": &q.timestamps} {
		value := query.Get(name)
		if value == "" {
			continue
		}
		var err error
		if *to, err = strconv.ParseBool(value); err != nil {
			return logRequest{}, refused("%s=%q: neither true nor false", name, value)
		}
	}
	seconds := int64(-1)
	for _, number := range []struct {
		name  string
		to    *int64
		least int64
	}{{"tailLines", &q.tail, 0}, {"limitBytes", &q.limit, 1}, {"sinceSeconds", &seconds, 1}} {
		value := query.Get(number.name)
		if value == "" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < number.least {
			return logRequest{}, refused("%s=%q: not a whole number of at least %d", number.name, value, number.least)
		}
		*number.to = n
	}
	if seconds > 0 {
		q.since = time.Unix(now.Unix()-seconds, 0)
	}
	if value := query.Get("sinceTime"); value != "" {
		if seconds > 0 {
			return logRequest{}, refused("at most one of sinceTime and sinceSeconds can be given")
		}
		var err error
		if q.since, err = time.Parse(time.RFC3339, value); err != nil {
			return logRequest{}, refused("sinceTime=%q: not a time such as 2026-01-31T15:04:05Z", value)
		}
	}
	switch value := query.Get("stream"); value {
	case "":
	case corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr:
		q.stream = value
	default:
		return logRequest{}, refused("stream=%q: choose All, Stdout or Stderr", value)
	}
	return q, nil
}
