// A client-go leader election candidate: contends for a Lease, and prints when its terms start and end.
//
//	election KUBECONFIG NAMESPACE NAME SECONDS
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The duration of a term, and the pause before the candidate contends for the next one.
const (
	term  = 3 * time.Second
	pause = time.Second
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	seconds, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	until, stop := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer stop()
	for round := 0; until.Err() == nil; round++ {
		contend(until, client, round%3 != 0)
		time.Sleep(pause)
	}
}

// contend waits for one term and leads for its duration. Without release, other candidates have to wait until the Lease
// expires.
func contend(until context.Context, client *kubernetes.Clientset, release bool) {
	ctx, cancel := context.WithCancel(until)
	defer cancel()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: os.Args[3], Namespace: os.Args[2]},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "go"},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond,
		ReleaseOnCancel: release, Name: "go",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				fmt.Println(time.Now().UnixMicro(), "leads")
				select {
				case <-leading.Done():
				case <-time.After(term):
				}
				fmt.Println(time.Now().UnixMicro(), "ends")
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
}
