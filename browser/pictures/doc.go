// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Pictures takes pictures of the page for the documents, in a cluster of "setpoint up":
//
//	make page-pictures
//
// In the cluster of $KUBECONFIG it creates a Deployment, gives it an image that cannot be pulled, and creates another one
// that a quota holds back. Then it runs "setpoint ui", opens the views in a headless Chromium, and writes what the browser
// shows:
//
//   - page-loops.png: the loops, one of them in trouble
//   - page-object.png: the Deployment whose image cannot be pulled
//   - page-changes.png: what happened in the namespace of the Deployment, with its rollout unfolded, in dark colors
//
// The times, and the names that a server makes at random, are those of the run.
package main
