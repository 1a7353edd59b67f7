/* Threads on a condition variable, clocks, and files that are not there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int count;

static void *work(void *number)
{
    for (int round = 0; round < 5; round++) {
        usleep(1000 * (1 + (long)number));
        pthread_mutex_lock(&mutex);
        count++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    for (long number = 0; number < 3; number++)
        pthread_create(&threads[number], 0, work, (void *)number);
    pthread_mutex_lock(&mutex);
    while (count < 15)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    for (int number = 0; number < 3; number++)
        pthread_join(threads[number], 0);
    time_t before = time(0);
    sleep(2);
    char name[64];
    struct stat status;
    gethostname(name, sizeof name);
    printf("%s %s: %d, slept %ld, pid %d, block %p, root %d, write %p\n", argc > 1 ? argv[1] : "", name, count,
           (long)(time(0) - before), getpid(), malloc(100), stat("/root", &status), (void *)fopen("/usr/evil", "w"));
    FILE *file = fopen("/result", "w");
    fprintf(file, "written");
    return fclose(file);
}
