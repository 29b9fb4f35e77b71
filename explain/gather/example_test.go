// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Why a ConfigMap is as it is, by the record of this process.
func Example() {
	resource := object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	key := object.Key{Namespace: "shop", Name: "settings"}
	server := fakeapi.New().Serve(resource)
	err := server.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	if err != nil {
		fmt.Println(err)
	}
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
	}
	record, err := runs.New(runs.LeastBytes)
	if err != nil {
		fmt.Println(err)
	}
	runs.Add(record.Loop("settings", "", "ConfigMap"), key, &runs.Ended{Began: time.Now(), Outcome: runs.Done, Reasons: []runs.Reason{
		{Code: "NotSigned", Text: "the settings are not signed", Ends: "they are signed"},
	}})

	g := gather.Gatherer{Client: c, Record: gather.Local(record)}
	facts, err := g.Facts(context.Background(), resource, key)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(explain.Tell(facts).Code, facts.Present[0].Reasons[0])
	// Output: Waits the settings are not signed (until they are signed)
}
