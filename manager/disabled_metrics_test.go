// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
)

func TestDisabledMetricsAreNotServed(t *testing.T) {
	for _, disabled := range [][]string{nil, {"oven_celsius", "no_such_metric"}} {
		l := listen(t)
		run(t, broken(t, somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true}), manager.DisabledMetrics(disabled...)))
		page := ""
		waitFor(t, "metrics", func() bool {
			_, page = ask(t, "http://"+l.Addr().String()+"/metrics", "")
			return strings.Contains(page, "workqueue_depth")
		})
		if got := strings.Contains(page, "oven_celsius"); got != (disabled == nil) {
			t.Errorf("without %q oven_celsius is served: %t", disabled, got)
		}
	}
}
