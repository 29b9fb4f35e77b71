// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The server answers a patch with a conflict if other writes come first five times.
func TestTheConditionOfARuleIsWrittenAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.serveRules()
		c.addSlice("s", 1)
		c.addPod("a", "d0")
		c.start()
		c.rules.RefuseNext(1, "patch", &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: http.StatusConflict,
			Message: "the object has been modified; please apply your changes to the latest version", Details: &metav1.StatusDetails{Name: "r", Kind: "devicetaintrules"}})
		c.addRule("r", "d0", resourcev1.DeviceTaintEffectNone)
		pass(time.Hour)
		if got := c.condition("r"); !strings.HasPrefix(got, "NoEffect=False") {
			t.Errorf("an hour later the condition is %q", got)
		}
	})
}
