// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

func TestMain(m *testing.M) { os.Exit(controlplanetest.Main(m)) }

func TestClusterSurvivesAKillAndIsFoundAtItsAddress(t *testing.T) {
	c := controlplanetest.Start(t, controlplanetest.Options{Restartable: true})
	namespace := c.Namespace(t)
	before := c.Client
	c.Kill()
	if _, err := before.Request(http.MethodGet).Path("/readyz").Do(t.Context()); err == nil {
		t.Error("a killed server answers")
	}
	c.Restart(t)
	if _, err := client.For[*corev1.Namespace](before).Get(t.Context(), object.Key{Name: namespace}); err != nil {
		t.Error(err)
	}
}

func TestKubectlIsReal(t *testing.T) {
	c := controlplanetest.Shared(t, controlplanetest.Options{})
	out, err := c.Kubectl(t, "version")
	if err != nil || strings.Count(out, "v1.36") < 2 {
		t.Errorf("%s, %v", out, err)
	}
}

func TestBinaryThatIsMissingSaysWhatToDo(t *testing.T) {
	t.Setenv("NONE", "")
	_, err := controlplanetest.Binary("none", "NONE")
	if err == nil || !strings.Contains(err.Error(), "make build") {
		t.Error(err)
	}
}
