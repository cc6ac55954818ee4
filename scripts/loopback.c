/*
 * DynamoDB Local listens on every interface and has no option for it. Preloaded into it, this narrows each IPv4 bind to
 * the loopback address, so that a test never opens a port to the network.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

int bind(int socket, const struct sockaddr *address, socklen_t length)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
    if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in narrowed = *(const struct sockaddr_in *)address;
        narrowed.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return next(socket, (const struct sockaddr *)&narrowed, sizeof narrowed);
    }
    return next(socket, address, length);
}
