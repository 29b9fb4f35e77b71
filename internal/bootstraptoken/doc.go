// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bootstraptoken finds the tokens with which new nodes join a cluster: Secrets of a
// type of their own in kube-system, called "bootstrap-token-" and the token's public part.
// [Informer] watches them and no other Secrets, and [Left] says how long one is valid.
package bootstraptoken
