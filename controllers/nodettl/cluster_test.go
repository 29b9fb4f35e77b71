// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodettl

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func TestThereIsNoNeedOfOtherRightsThanThoseDeclared(t *testing.T) {
	cluster := shared.Get(t)
	eyes := managertest.Run(t, cluster.Config)
	managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	node, err := client.For[*corev1.Node](cluster.Client).Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "small-"}})
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, eyes, object.KeyOf(node), "the annotation", func(node *corev1.Node) bool {
		return node.Annotations["node.alpha.kubernetes.io/ttl"] == "0"
	})
}
