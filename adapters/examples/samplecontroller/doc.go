// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command samplecontroller is a controller in the shape of kubernetes' sample-controller, on
// client-go: a Foo has a Deployment with its name and number of replicas. Its types, clientset,
// informers and listers are as client-go's generators write them. The lines that put it on the cache
// of Setpoint are in informers.go of this folder, in newFactories; the rest is as it would be without.
//
//	samplecontroller -kubeconfig FILE
package main
